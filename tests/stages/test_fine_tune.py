"""Tests the model of another method than PPPFL's: made by hand, and fine-tuned by each client alone."""

import contextlib
import json
import shutil
from pathlib import Path

import pytest
from project import Project, names_in

from pipelines import config, paths
from pipelines.federation.home import results
from pipelines.files import read_csv
from pipelines.guard import uploads
from stages import fine_tune, meta_train, train_alone, train_baseline

GENERATOR = "dp_moments"
METHODS = ["fedavg", "pooled", "fedmeta"]


@pytest.fixture(scope="module")
def made(_checkout, tmp_path_factory) -> Path:
    """Makes a project with the models of all methods, whose stages ran in this process."""
    path = tmp_path_factory.mktemp("shared") / "fedlens"
    shutil.copytree(_checkout, path)
    project = Project(path)

    def change(params):
        params["synthesis"]["generators"] = [GENERATOR]
        params["baselines"]["algorithms"] = ["random_init", *METHODS]

    project.edit(change)
    project.export(["c0", "c1"], GENERATOR)
    with contextlib.chdir(path):
        params = config.load()
        train_alone.run(params, "own")
        for method in ("pppfl", *METHODS):
            meta_train.run(params, "own", GENERATOR, method)
            fine_tune.run(params, "own", GENERATOR, method)
    return path


def tuned(method: str) -> Path:
    return paths.personal("own", paths.of_method(GENERATOR, method)) / f"{method}-{GENERATOR}"


@pytest.mark.parametrize("method", METHODS)
def test_a_method_leaves_what_pppfl_leaves_in_a_folder_of_its_own(inside, method):
    assert paths.initial("own", paths.of_method(GENERATOR, method)).name == f"{GENERATOR}-{method}"
    assert names_in(paths.initial("own", paths.of_method(GENERATOR, method))) == {
        *uploads.INITIAL,
        uploads.POOL,
    }
    assert names_in(paths.cost("own", paths.of_method(GENERATOR, method))) == names_in(
        paths.cost("own", GENERATOR)
    )
    assert names_in(tuned(method)) == names_in(tuned("pppfl"))
    content = json.loads((tuned(method) / "results.json").read_text())
    assert content["method"] == f"{method}/{GENERATOR}"
    assert content["health"]["collapsed"] is False and content["guarantee"] == "formal"


@pytest.mark.parametrize("method", ["pppfl", *METHODS])
def test_the_curve_has_a_row_for_every_model_but_the_first(inside, method):
    folder = paths.initial("own", paths.of_method(GENERATOR, method))
    models = results.load_models(folder / "rounds.safetensors")
    numbers = [int(row["round"]) for row in read_csv(folder / "rounds.csv")]
    assert numbers == ([0] if method == "pooled" else list(range(1, len(models))))
    has_rate = "outer_learning_rate" in read_csv(folder / "rounds.csv")[0]
    assert has_rate == (method in ("pppfl", "fedmeta"))


@pytest.mark.parametrize("method", METHODS)
def test_both_stages_give_the_bytes_of_train_baseline(inside, method):
    train_baseline.run(config.load(), "own", method)
    other = paths.baseline("own", method) / f"{method}-{GENERATOR}"
    for name in names_in(other) - {"results.json", paths.COST}:
        assert (other / name).read_bytes() == (tuned(method) / name).read_bytes(), name
    theirs = json.loads((other / "results.json").read_text())
    ours = json.loads((tuned(method) / "results.json").read_text())
    assert theirs == {name: ours[name] for name in theirs}


@pytest.mark.parametrize("pool", [True, False])
@pytest.mark.parametrize("method", ["fedavg", "pooled"])
def test_a_client_that_knows_of_itself_alone_fine_tunes_the_folder(
    inside, _checkout, tmp_path, monkeypatch, method, pool
):
    shutil.copytree(_checkout, tmp_path / "alone")
    project = Project(tmp_path / "alone")

    def alone(params):
        params["clients"] = {"c0": {"epsilon": 10.0}}
        params["partition"].update(clients=["c0"], small=None)
        params["new_clients"]["held_out"] = []
        params["synthesis"]["generators"] = [GENERATOR]
        params["baselines"]["algorithms"] = ["fedavg", "pooled"]

    project.edit(alone)
    handed_out = [
        paths.initial("own", paths.of_method(GENERATOR, method)),
        paths.cost("own", paths.of_method(GENERATOR, method)),
        paths.shards("own") / "c0",
        paths.prepared("own"),
    ]
    for folder in handed_out:
        shutil.copytree(inside / folder, project.path / folder)
    if not pool:
        (project.path / handed_out[0] / paths.POOL).unlink()
    monkeypatch.chdir(project.path)
    train_alone.run(config.load(), "own")
    fine_tune.run(config.load(), "own", GENERATOR, method)
    assert not (tuned(method) / "c1.safetensors").exists()
    same = (tuned(method) / "c0.safetensors").read_bytes() == (
        inside / tuned(method) / "c0.safetensors"
    ).read_bytes()
    # without released images the recipe holds the model near the one that was handed out
    assert same == pool


def test_another_methods_folder_is_not_taken_for_pppfls(inside):
    first = results.load_models(paths.initial("own", GENERATOR) / "rounds.safetensors")
    assert len(first) == 1 + config.load().meta.rounds
    assert json.loads((tuned("pppfl") / "results.json").read_text())["method"] == "pppfl/dp_moments"
