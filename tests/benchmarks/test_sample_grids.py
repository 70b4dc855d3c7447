"""Tests the pictures of docs/synthesis.md.

They have a row per class that is there, few grey levels, and a name that says what they are.
"""

import sys

import numpy as np
import pytest
from PIL import Image
from project import ROOT

from benchmarks import sample_grids
from pipelines.datasets.labelled_images import Images


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Runs the benchmark on made-up records of digits' shape and returns the folder it fills."""
    rng = np.random.default_rng(0)
    labels = np.arange(900) % 9  # the last class has no record
    images = np.clip(
        rng.normal(60 + 20 * labels[:, None, None, None], 20, (900, 8, 8, 1)), 0, 255
    ).astype(np.uint8)
    monkeypatch.setattr(
        sample_grids.sources,
        "read",
        lambda *_, **__: (Images(images, labels, np.arange(900)), None),
    )
    monkeypatch.chdir(ROOT)

    def run(*arguments: str):
        asked = [
            "grids",
            "--datasets",
            "digits",
            "--records",
            "900",
            "--folder",
            str(tmp_path),
            *arguments,
        ]
        monkeypatch.setattr(sys, "argv", asked)
        sample_grids.main()
        return tmp_path

    return run


@pytest.mark.slow
def test_a_grid_per_generator_and_epsilon_in_few_grey_levels(drawn, capsys):
    folder = drawn("--generators", "dp_moments", "dp_merf", "--epsilons", "3", "10")
    names = {
        f"digits-{name}-epsilon{epsilon}.png"
        for name in ("dp_moments", "dp_merf")
        for epsilon in (3, 10)
    }
    assert {path.name for path in folder.iterdir()} == names
    for path in folder.iterdir():
        grid = np.asarray(Image.open(path).convert("L"))
        assert 2 < len(np.unique(grid)) <= sample_grids.LEVELS
    said = capsys.readouterr().out
    assert all(f"{folder / name}: " in said for name in names)


def test_the_noise_is_drawn_anew(drawn):
    path = drawn("--generators", "dp_moments", "--epsilons", "3") / "digits-dp_moments-epsilon3.png"
    first = path.read_bytes()
    drawn("--generators", "dp_moments", "--epsilons", "3")
    assert path.read_bytes() != first
