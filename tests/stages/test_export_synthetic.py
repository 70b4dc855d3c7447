"""Tests export_synthetic as a user sees it: where the images lie, and a released classifier."""

import contextlib

import numpy as np
import pytest
from project import Project

from pipelines import config
from pipelines.config.generators import WITH_CLASSIFIER
from pipelines.datasets import shards
from pipelines.errors import UserError
from pipelines.files import read_arrays, read_json, write_arrays
from pipelines.paths import CLASSIFIER
from pipelines.synthesis import released_classifier
from stages import check_quality, export_synthetic


def test_the_stage_says_where_the_images_lie(checkout, capsys):
    checkout.export(["c0"], "dp_moments")
    capsys.readouterr()
    with contextlib.chdir(checkout.path):
        export_synthetic.run(config.load(), "own", "c0", "dp_moments")
    told = capsys.readouterr().out
    place = "data/synthetic/own/c0/dp_moments"
    files = "images.npz, grid.png, card.md, and huggingface/ for other tools"
    assert told == f"own/c0/dp_moments: 60 images in {place}: {files}\n"
    assert (checkout.path / place / "images.npz").exists()
    assert not (checkout.path / place / CLASSIFIER).exists()


def few_steps(params: dict) -> None:
    """Changes the tiny parameters to generators that release a classifier in seconds."""
    params["synthesis"]["generators"] = list(WITH_CLASSIFIER)
    params["new_clients"]["held_out"] = []
    params["clients"]["c1"]["epsilon"] = params["clients"]["c0"]["epsilon"]
    schedule = {"from_signal": 0, "steps": 2, "learning_rate": 4.0}
    for blocks in (params["synthesis"], params["profiles"]["own"]["synthesis"]):
        for name in ("dp_head", "joint_head"):
            if name in blocks:
                blocks[name]["schedules"] = [schedule]
        if "dp_teacher" in blocks:
            warm_start = {"images": 60, "epochs": 1, "batch": 16, "learning_rate": 0.001}
            blocks["dp_teacher"] |= {"steps": 2, "warm_start": warm_start}


def spoilt(project: Project, generator: str) -> None:
    """Takes an array that the classifier needs out of a generator's state."""
    path = project.path / f"models/private/generators/own/c0/{generator}/generator.safetensors"
    state = read_arrays(path)
    del state["cnn" if generator == "dp_teacher" else "head"]
    write_arrays(path, state)


@pytest.mark.parametrize("generator", WITH_CLASSIFIER)
def test_a_released_classifier_is_handed_out_and_scored_at_home(checkout, capsys, generator):
    checkout.edit(few_steps)
    checkout.export(["c0"], generator)
    assert f"card.md, {CLASSIFIER}, and huggingface/" in capsys.readouterr().out
    folder = checkout.path / "data/synthetic/own/c0" / generator
    card = read_json(folder / "card.json")
    assert card["classifier"]["network"] == ("mlp" if generator == "dp_teacher" else "scatter")
    assert f"  {CLASSIFIER}\n" in (folder / "SHA256SUMS").read_text()
    with contextlib.chdir(checkout.path):
        params = config.load()
        check_quality.run(params, "own", "c0", generator)
        quality = read_json(
            checkout.path / f"models/private/quality/own/c0/{generator}/quality.json"
        )
        profile = params.profiles["own"]
        test = shards.read("own", "c0", "test", profile)
        model = released_classifier.read(folder, profile)
        assert quality["released_accuracy"] == np.mean(model.predict(test) == test.labels)
        score = f", released classifier {quality['released_accuracy']:.3f}\n"
        assert score in capsys.readouterr().out
        (folder / CLASSIFIER).unlink()
        with pytest.raises(UserError, match=f"Could not read .*{CLASSIFIER}"):
            check_quality.run(params, "own", "c0", generator)
        spoilt(checkout, generator)
        with pytest.raises(UserError, match=f"which {generator} needs. Run train_generator again"):
            export_synthetic.run(params, "own", "c0", generator)
