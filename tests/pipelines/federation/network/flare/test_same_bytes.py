"""Tests the result of a run over the network, and what crosses it.

Real server and clients use mutual TLS on loopback.
"""

import contextlib
import json
import shutil
import sys
from functools import partial

import numpy as np
import parameter_files
import pytest
from project import CANARY, ENV, ROOT, Project

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from network import CLIENTS, FEDAVG, GENERATOR, HEAD, NOISY, POOLED, PPPFL, SCAFFOLD, SDA_FL

from pipelines import config, methods, paths
from pipelines.datasets import exports, shards
from pipelines.errors import UserError
from pipelines.federation import noisy_training
from pipelines.federation.home import results
from pipelines.federation.inprocess import federate
from pipelines.federation.network.flare import names, processes, submit
from pipelines.federation.noisy_run import NoisyRun
from pipelines.privacy.ledger import Ledger
from stages import train_alone, train_dp_baseline

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("inside")]

# The others take a minute each.
SYNTHETIC = [
    *(pytest.param(run, id=run.method) for run in (PPPFL, SCAFFOLD)),
    *(pytest.param(run, id=run.method, marks=pytest.mark.slow) for run in (FEDAVG, SDA_FL, POOLED)),
]


@pytest.fixture(scope="module")
def runs(project, tmp_path_factory, request) -> tuple[dict, bytes, dict]:
    """Returns ({run: its result over the network}, all that crossed, {client: its ledger's
    mechanisms}), of the runs that a test asks for and of the noisy head.
    """
    tap, work = tmp_path_factory.mktemp("tap"), project.path / ".scratch/nvflare/runs"
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(project.path):
        patch.setenv("TAP", str(tap))
        patch.setenv("PYTHONPATH", str(ROOT / "tests/tap"))
        params, everything = config.load(), [*asked_for(request), HEAD]
        with submit.network(params, *submit.lay_out(params, everything, work), work) as network:
            found = {run: network.execute(run) for run in everything}
        ledgers = {
            client: Ledger(paths.ledgers() / "own" / f"{client}.jsonl", delta=1e-5)
            for client in CLIENTS
        }
        entered = {
            client: [entry["mechanism"] for entry in opened(ledger)]
            for client, ledger in ledgers.items()
        }
    return found, b"".join(file.read_bytes() for file in tap.iterdir()), entered


def asked_for(request: pytest.FixtureRequest) -> list:
    """Returns the runs for which this session has a test, beside the noisy head's."""
    here = (item for item in request.session.items if item.module is request.module)
    parameters = (item.callspec.params for item in here if hasattr(item, "callspec"))
    return list(dict.fromkeys([PPPFL, *(given["run"] for given in parameters if "run" in given)]))


def in_bytes(models: list[dict]) -> list[dict[str, bytes]]:
    return [{name: array.tobytes() for name, array in model.items()} for model in models]


def opened(ledger: Ledger) -> list[dict]:
    return [entry for entry in ledger.entries() if entry["event"] == "open"]


@pytest.mark.parametrize("run", SYNTHETIC)
def test_the_network_and_this_process_give_the_same_bytes(run, runs):
    params, there = config.load(), runs[0][run].history
    data = exports.images("own", CLIENTS, GENERATOR)
    here = federate(methods.module(run.method), run.task(params, data), run.settings(params))
    assert len(here.models) == (1 if run == POOLED else 4)
    assert in_bytes(here.models) == in_bytes(there.models)
    assert {**here.cost, "seconds": 0} == {**there.cost, "seconds": 0}
    assert here.curves == there.curves


@pytest.mark.parametrize("run", SYNTHETIC)
def test_sets_come_with_their_cards_where_the_server_gathers_them_and_nowhere_else(run, runs):
    found = runs[0][run].handed_in
    assert set(found) == (set(CLIENTS) if run in (PPPFL, SDA_FL, POOLED) else set())
    sets = exports.images("own", CLIENTS, GENERATOR)
    for client, export in found.items():
        assert export.images.images.tobytes() == sets[client].images.tobytes()
        assert export.card == exports.card("own", client, GENERATOR)


@pytest.mark.slow
@pytest.mark.parametrize("run", [NOISY], ids=["dpsgd"])
def test_noisy_training_gives_the_same_weights(run, runs):
    """They are equal to the last bits of a float.

    In one process lots of one to three records share passes and round otherwise.
    """
    # in this process, with the same noise for tests
    train_alone.run(config.load(), "own")
    train_dp_baseline.run(config.load(), "own", "dpsgd")
    (store,) = (
        folder
        for folder in (paths.ledgers() / "own/releases").iterdir()
        if (folder / "spent.json").exists()
    )
    (here,), (there,) = (
        results.load_models(store / "rounds.safetensors"),
        runs[0][run].history.models,
    )
    for name, array in there.items():
        np.testing.assert_allclose(here[name], array, rtol=0, atol=1e-6)
    assert json.loads((store / "spent.json").read_text()) == runs[0][run].spent


def test_a_noisy_head_gives_the_same_bytes(runs, project):
    """Its sums are integers: no pass and no order rounds them otherwise."""
    params = config.load()
    records = {client: shards.read("own", client, "train") for client in CLIENTS}
    noisy = NoisyRun(params, "own", HEAD.method)
    store, _ = noisy.release(records)
    here, cost = noisy_training.read(store)
    there = runs[0][HEAD].history
    assert in_bytes([here]) == in_bytes([there.models[-1]])
    assert np.abs(here["2.weight"]).max() > 0
    assert json.loads((store / "spent.json").read_text()) == runs[0][HEAD].spent
    assert cost["bytes_up"] == there.cost["bytes_up"]


def test_each_client_entered_its_own_noisy_run_before_it_answered(runs):
    for mechanisms in runs[2].values():
        assert mechanisms.count("dpsgd_head") == 1
        assert mechanisms.count("dpsgd") == (NOISY in runs[0])


def test_no_private_image_crosses(runs, project):
    crossed = runs[1]
    shards = [
        np.load(file)["images"]
        for file in (project.path / "data/private/own/clients").glob("*/train.npz")
    ]
    assert len(shards) == 3 and all(
        CANARY in image.tobytes() for images in shards for image in images
    )
    assert CANARY not in crossed
    for images in shards:
        assert not any(image.tobytes()[:16] in crossed for image in images)
    # what may cross did, and was seen: the sets that sda_fl shares, and the weights of a round
    exported = exports.images("own", CLIENTS, GENERATOR)
    assert all(data.images.tobytes()[:200] in crossed for data in exported.values())
    weights = runs[0][PPPFL].history.models[1]
    assert max(weights.values(), key=np.size).tobytes()[:200] in crossed


@pytest.mark.slow
def test_organisations_that_know_of_themselves_alone_and_a_submitter_apart(
    project, monkeypatch, tmp_path, runs
):
    """In `remote` mode the submitter's kit finds what runs elsewhere.

    The submitter has everybody's card and no image. Each client's params.yaml names itself only.
    """
    params, work = config.load(), project.path / ".scratch/nvflare/remote"
    own, homes = submit.lay_out(params, [PPPFL], work)

    def alone(client: str, content: dict) -> None:
        content["clients"] = {client: {"epsilon": 7.0}}
        content["partition"]["clients"] = [client]

    for client in CLIENTS:
        Project(homes[client]).edit(partial(alone, client))
        card = paths.synthetic("own", client, GENERATOR) / "card.json"
        (tmp_path / card).parent.mkdir(parents=True)
        shutil.copy(card, tmp_path / card)
    parameter_files.copy_files(project.path, tmp_path)
    submitter = Project(tmp_path)
    submitter.edit(lambda content: content["federation"].update(engine="nvflare", mode="remote"))
    stage = [
        sys.executable,
        "-m",
        "stages.meta_train",
        "--dataset",
        "own",
        "--generator",
        GENERATOR,
    ]
    monkeypatch.setitem(ENV, "PYTHONPATH", str(ROOT))
    assert "FEDLENS_KIT must name the folder" in submitter.run(*stage, ok=False).stderr
    monkeypatch.setitem(ENV, "FEDLENS_KIT", str(own / names.ADMIN))
    with processes.started(own, homes, work / "logs", {}):
        submitter.run(*stage)
    found = results.load_models(tmp_path / paths.initial("own", GENERATOR) / "rounds.safetensors")
    assert in_bytes(found) == in_bytes(runs[0][PPPFL].history.models)


@pytest.mark.slow
def test_other_parameters_at_a_client_fail_the_run_by_name(project):
    params, run, work = config.load(), FEDAVG, project.path / ".scratch/nvflare/terms"
    own, homes = submit.lay_out(params, [run], work)
    Project(homes["c2"]).edit(
        lambda content: content["baselines"]["fedavg"].update(learning_rate=0.01)
    )
    with (
        pytest.raises(
            UserError, match="c2 and the server have different parameters for this run: settings"
        ),
        submit.network(params, own, homes, work) as network,
    ):
        network.execute(run)
