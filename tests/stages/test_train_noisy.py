"""Tests the shared model of noisy messages: handed out, guarded, and adapted by each client."""

import contextlib
import json
import math
import shutil
from pathlib import Path

import pytest
from project import Project, names_in

from pipelines import config, paths
from pipelines.datasets import shards
from pipelines.errors import UserError
from pipelines.federation import noisy_training
from pipelines.federation.core.rounds import History, NetworkRun
from pipelines.federation.home import personal
from pipelines.federation.noisy_run import NoisyRun
from pipelines.files import read_csv
from pipelines.guard import uploads
from stages import fine_tune_noisy, train_noisy

METHOD = "dpsgd_head"
NAME = paths.of_noisy_method(METHOD)
LOST = "c1"


def remote(params: dict) -> None:
    params["federation"].update(engine="nvflare", mode="remote")
    params["dp_baselines"]["algorithms"] = [METHOD]
    params["dp_baselines"][METHOD]["rounds"] = 4


def in_this_process(params, run) -> NetworkRun:
    """Stands for the rounds between machines, of which c1 was lost before it said what it spent."""
    records = {client: shards.read(run.dataset, client, "train") for client in params.clients}
    local = params.model_copy(
        update={"federation": params.federation.model_copy(update={"engine": "inprocess"})}
    )
    store, _ = NoisyRun(local, run.dataset, run.method).release(records)
    model, cost = noisy_training.read(store)
    spent = json.loads((store / noisy_training.SPENT).read_text())
    del spent[LOST]
    return NetworkRun(History([model], read_csv(store / noisy_training.LOG), cost), spent, {})


@pytest.fixture(scope="module")
def made(_checkout, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("noisy") / "fedlens"
    shutil.copytree(_checkout, path)
    project = Project(path)
    project.edit(remote)
    project.export(["c0", "c1"], "dp_moments")
    with contextlib.chdir(path), pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_noisy, "networked", in_this_process)
        train_noisy.run(config.load(), "own", METHOD)
        fine_tune_noisy.run(config.load(), "own", METHOD)
    return path


def test_the_folder_holds_the_last_model_and_what_each_client_spent(inside):
    folder = paths.initial("own", NAME)
    assert names_in(folder) == set(uploads.OF_NOISE)
    privacy = json.loads((folder / "privacy.json").read_text())
    params = config.load()
    assert privacy["epsilon_by_client"]["c0"] == pytest.approx(params.clients["c0"].epsilon)
    # of a client that said nothing no guarantee is known
    assert privacy["epsilon_by_client"][LOST] == privacy["epsilon_max"] == "inf"
    assert privacy["guarantee"] == "none"


def test_clients_that_all_said_what_they_spent_have_a_formal_guarantee():
    said = {"c0": {"epsilon_spent": 2.0}, "c1": {"epsilon_spent": 3.0}}
    privacy = train_noisy._privacy(["c0", "c1"], said)
    assert privacy["epsilon_by_client"] == {"c0": 2.0, "c1": 3.0}
    assert (privacy["epsilon_max"], privacy["guarantee"]) == (3.0, "formal")
    assert (privacy["unit"], privacy["relation"]) == ("record", "add or remove one record")
    assert privacy["said_by"].startswith("the clients")
    said["c1"]["epsilon_spent"] = math.inf
    assert train_noisy._privacy(["c0", "c1"], said)["guarantee"] == "none"


def test_each_client_adapts_it_and_the_file_reads_back(inside):
    folder = paths.personal("own", NAME) / METHOD
    assert {"c0.safetensors", "c1.safetensors", "results.json", paths.COST} <= names_in(folder)
    params = config.load()
    network = NoisyRun(params, "own", METHOD).network
    model = personal.read(folder / "c0.safetensors", params.profiles["own"], network)
    test = shards.read("own", "c0", "test")
    results = json.loads((folder / "results.json").read_text())
    right = float((model.predict(test) == test.labels).mean())
    assert results["clients"]["c0"]["after"]["accuracy"] == pytest.approx(right)


def test_a_client_that_knows_of_itself_alone_adapts_the_same_model(
    inside, _checkout, tmp_path, monkeypatch
):
    shutil.copytree(_checkout, tmp_path / "alone")
    project = Project(tmp_path / "alone")

    def alone(params):
        remote(params)
        params["clients"] = {"c0": {"epsilon": 10.0}}
        params["partition"].update(clients=["c0"], small=None)
        params["new_clients"]["held_out"] = []

    project.edit(alone)
    handed_out = (
        paths.initial("own", NAME),
        paths.cost("own", NAME),
        paths.shards("own") / "c0",
        paths.prepared("own"),
    )
    for folder in handed_out:
        shutil.copytree(inside / folder, project.path / folder)
    monkeypatch.chdir(project.path)
    fine_tune_noisy.run(config.load(), "own", METHOD)
    ours = paths.personal("own", NAME) / METHOD
    assert not (ours / "c1.safetensors").exists()
    assert (ours / "c0.safetensors").read_bytes() == (inside / ours / "c0.safetensors").read_bytes()


def test_the_guard_knows_the_folder_and_no_other_file_in_it(inside):
    folder = paths.initial("own", NAME)
    handed_out = [
        upload for upload in uploads._made_by_hand(inside, []) if upload.path == str(folder)
    ]
    assert [list(uploads._wrong(upload)) for upload in handed_out] == [[]]
    strange = folder / "records.npz"
    strange.write_bytes(b"")
    (upload,) = (
        upload for upload in uploads._made_by_hand(inside, []) if upload.path == str(folder)
    )
    (sentence,) = uploads._wrong(upload)
    strange.unlink()
    assert "records.npz is none of the files that may leave" in sentence
    assert f"`python -m stages.train_noisy --dataset own --algorithm {METHOD}`" in sentence


@pytest.mark.parametrize("engine, mode", [("inprocess", "local"), ("nvflare", "local")])
def test_on_one_machine_the_stage_of_dvc_is_named(inside, engine, mode):
    params = config.load()
    federation = params.federation.model_copy(update={"engine": engine, "mode": mode})
    with pytest.raises(UserError, match=r"must be 'remote' .* stage train_dp_baseline"):
        train_noisy.run(params.model_copy(update={"federation": federation}), "own", METHOD)


def test_images_without_fixed_features_are_one_sentence(inside):
    params = config.load()
    profile = params.profiles["own"].model_copy(update={"shape": [8, 70, 1]})
    other = params.model_copy(update={"profiles": {**params.profiles, "own": profile}})
    with pytest.raises(UserError, match="dpsgd_head is left out: it needs images of 8 to 64"):
        train_noisy.run(other, "own", METHOD)


def test_without_the_model_the_folder_is_named(inside, tmp_path, monkeypatch):
    params = config.load()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=rf"Could not read models/initial/own/{NAME}/privacy.json"):
        fine_tune_noisy.run(params, "own", METHOD)
