"""Tests that every experiment writes its three files from stored runs."""

import csv
import io

import numpy as np
import pytest
from kept_runs import method, newcomers, run
from PIL import Image

from experiments import catalogue
from experiments.plans import GROUPS, STABILISERS, of_images


@pytest.fixture
def kept(of_table2) -> dict[str, list[dict]]:
    """Returns {store: runs}."""
    fidelity = {"c0": {"fid": None, "fid_floor": 1.0, "inception_score": 2.0}}
    ours = {"pppfl/dp_moments": method(0.6, 0.7)}
    quality = {
        "judge_accuracy": 0.9,
        "inception_score_real": 9.0,
        "clients": {"dp_moments": fidelity},
    }
    shared = {"dp_moments": [0.1 * number for number in range(8)]}
    return {
        "table2": of_table2,
        "table3": of_table2,
        "table5": [
            run(0, ours, variant=of_images("dp_moments", group), fidelity=quality)
            for group in GROUPS
        ],
        "roads": of_table2,
        "newcomers": [
            newcomers(seed, {"pppfl": [0.6, 0.7], "random_init": [0.5, 0.5]}) for seed in (0, 1)
        ],
        "figure2": [
            run(
                0,
                ours,
                variant=of_images("dp_moments", name),
                shared_per_round=shared,
                query_per_round=shared,
            )
            for name in STABILISERS
        ],
    }


@pytest.mark.parametrize("name", catalogue.EXPERIMENTS)
def test_table_page_and_picture(name, kept, results):
    results.mkdir()
    rows = kept[catalogue.EXPERIMENTS[name].store]
    catalogue.write(name, rows)
    table = list(csv.DictReader(io.StringIO((results / f"{name}.csv").read_text())))
    page = (results / f"{name}.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("|")]
    assert len(table) == len(lines) - 2 > 0
    assert len({line.count("|") for line in lines}) == 1
    assert f"![{catalogue.EXPERIMENTS[name].title}]({name}.png)" in page
    assert "not like for like" in page or "no figure stands beside ours" in " ".join(page.split())
    assert Image.open(results / f"{name}.png").size[0] == 1350
    before = (results / f"{name}.png").read_bytes()
    catalogue.write(name, rows)
    assert (results / f"{name}.png").read_bytes() == before


def test_the_page_marks_bounds_and_test_selection(kept, results):
    results.mkdir()
    catalogue.write("table2", kept["table2"])
    lines = (results / "table2.md").read_text().splitlines()
    assert any(
        line.startswith("| `fedavg_real` (upper bound, not private)") and "∞" in line
        for line in lines
    )
    assert any("BMTA, test-selected" in line for line in lines)
    (ours,) = [line for line in lines if line.startswith("| `pppfl`")]
    assert "+0.200 [+0.1" in ours and "0.964" in ours and "1 kB" in ours


@pytest.mark.parametrize("name", ["table2", "table4", "figure4"])
def test_a_generator_with_fewer_seeds_is_shown_over_the_cells_that_it_has(name, kept, results):
    """A table is measured seed by seed."""
    results.mkdir()
    (first, _) = kept["table2"]
    entries = {
        k.replace("dp_moments", "datalens"): v for k, v in first["methods"].items() if "/" in k
    }
    catalogue.write(name, [*kept["table2"], {**first, "variant": "datalens", "methods": entries}])
    table = list(csv.DictReader(io.StringIO((results / f"{name}.csv").read_text())))
    counts = {
        row["generator"]: row["n" if name == "figure4" else "cells"]
        for row in table
        if row["generator"]
    }
    assert counts == {"dp_moments": "4", "datalens": "2"}


@pytest.mark.parametrize("name", ["table2", "table4", "figure4"])
def test_one_generator_without_the_bounds_is_shown_without_differences(name, kept, results):
    """`--generators datalens` runs none of the bounds."""
    results.mkdir()
    (first, _) = kept["table2"]
    entries = {
        k.replace("dp_moments", "datalens"): v for k, v in first["methods"].items() if "/" in k
    }
    catalogue.write(name, [{**first, "variant": "datalens", "methods": entries}])
    assert "datalens" in (results / f"{name}.md").read_text() and (results / f"{name}.png").exists()


def test_figure2_bands_the_extent_of_its_seeds_and_has_a_point_per_client(kept):
    """A variant has a band of the shared model's rounds, and none for a single seed."""
    (one,) = kept["figure2"][:1]
    low = [value - 0.1 for value in one["shared_per_round"]["dp_moments"]]
    two = [{**row, "seed": 1, "shared_per_round": {"dp_moments": low}} for row in kept["figure2"]]
    experiment = catalogue.EXPERIMENTS["figure2"]
    for rows, bands in ((kept["figure2"], 0), ([*kept["figure2"], *two], len(STABILISERS))):
        drawn = experiment.picture(experiment.table(rows), rows)
        shared, home = drawn.axes
        assert len(shared.collections) == bands
        means = [line.get_segments()[0][:, 1] for line in home.collections]
        assert np.allclose(means, 0.65) and len(means) == len(STABILISERS)
        points = [line.get_ydata() for line in home.lines]
        assert list(map(list, points)) == [[0.6, 0.7] * (2 if bands else 1)] * len(STABILISERS)
    heights = drawn.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(min(low)) and heights.max() == pytest.approx(
        max(low) + 0.1
    )
