"""Real server and clients over mutual TLS on loopback: `make test-engine`."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from project import CANARY, ENV, ROOT, Project

from pipelines import config, paths
from pipelines.datasets import exports
from pipelines.errors import UserError
from pipelines.federation import methods, outcome
from pipelines.federation.runs import Run
from pipelines.federation.task import federate
from pipelines.privacy.ledger import Ledger
from stages import export_synthetic, partition, prepare, train_dp_baseline, train_generator

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from pipelines.federation.engines.flare import carried, jobs, kits, processes

pytestmark = pytest.mark.engine
GENERATOR, CLIENTS = "dp_moments", ["c0", "c1", "c2"]
SYNTHETIC = [Run("own", method, GENERATOR) for method in ("pppfl", "fedavg", "scaffold", "sda_fl")]
NOISY = Run("own", "dpsgd")


def three_clients(params: dict) -> None:
    params["clients"] = {client: {"epsilon": 5.0} for client in CLIENTS}
    params["partition"].update(clients=CLIENTS, small=None)
    params["privacy"]["noise"] = "seeded_for_tests"
    params["synthesis"]["generators"] = [GENERATOR]
    params["baselines"]["algorithms"] = ["random_init", "fedavg", "scaffold", "sda_fl"]
    params["new_clients"]["held_out"] = []
    for block in (params["meta"], params["dp_baselines"]["dpsgd"], *map(params["baselines"].get, methods_with_rounds)):
        block["rounds"] = 3
    params["federation"].update(start_timeout=60.0, ping_timeout=5.0)


methods_with_rounds = ("fedavg", "scaffold", "sda_fl")


@pytest.fixture(scope="module")
def project(_checkout, tmp_path_factory) -> Project:
    """Three clients with their exported sets; no model yet."""
    path = tmp_path_factory.mktemp("flare") / "fedlens"
    shutil.copytree(_checkout, path)
    made = Project(path)
    made.edit(three_clients)
    with contextlib.chdir(path):
        params = config.load()
        prepare.run(params, "own")
        partition.run(params, "own")
        for client in CLIENTS:
            train_generator.run(params, "own", client, GENERATOR)
            export_synthetic.run(params, "own", client, GENERATOR)
    return made


@pytest.fixture(autouse=True)
def inside(project, monkeypatch):
    """In the project's folder; afterwards nothing that was started there is left."""
    monkeypatch.chdir(project.path)
    yield
    assert not left_in(project)


def left_in(project: Project) -> list[int]:
    return processes._working_in(project.path)


@pytest.fixture(scope="module")
def runs(project, tmp_path_factory) -> tuple[dict, bytes, dict]:
    """({run: what came of it over the network}, all that crossed, {client: its ledger's mechanisms})."""
    tap, work = tmp_path_factory.mktemp("tap"), project.path / ".scratch/nvflare/runs"
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(project.path):
        patch.setenv("TAP", str(tap))
        patch.setenv("PYTHONPATH", str(ROOT / "tests/tap"))
        params, everything = config.load(), [*SYNTHETIC, NOISY]
        with carried.network(params, *carried.laid_out(params, everything, work), work) as network:
            found = {run: network.carry(run) for run in everything}
        ledgers = {client: Ledger(paths.ledgers() / "own" / f"{client}.jsonl", delta=1e-5) for client in CLIENTS}
        entered = {client: [entry["mechanism"] for entry in of(ledger)] for client, ledger in ledgers.items()}
    return found, b"".join(file.read_bytes() for file in tap.iterdir()), entered


def of(ledger: Ledger) -> list[dict]:
    return [entry for entry in ledger.entries() if entry["event"] == "open"]


@pytest.mark.parametrize("run", SYNTHETIC, ids=lambda run: run.method)
def test_the_network_and_this_process_give_the_same_bytes(run, runs):
    params, there = config.load(), runs[0][run].history
    data = exports.images("own", CLIENTS, GENERATOR)
    here = federate(methods.module(run.method), run.task(params, data), run.settings(params))
    assert len(here.models) == len(there.models) == 4
    for ours, theirs in zip(here.models, there.models):
        assert {name: array.tobytes() for name, array in ours.items()} == {n: a.tobytes() for n, a in theirs.items()}
    assert {**here.cost, "seconds": 0} == {**there.cost, "seconds": 0}
    assert here.curves == there.curves


def test_organisations_that_know_of_themselves_alone_and_a_submitter_apart(project, monkeypatch, runs):
    """`remote`: what runs elsewhere is found by the submitter's kit; each client's params.yaml names itself only."""
    params, run, work = config.load(), SYNTHETIC[1], project.path / ".scratch/nvflare/remote"
    own, homes = carried.laid_out(params, [run], work)

    def alone(client: str, content: dict) -> None:
        content["clients"] = {client: {"epsilon": 7.0}}
        content["partition"]["clients"] = [client]

    for client in CLIENTS:
        Project(homes[client]).edit(partial(alone, client))
    apart = params.model_copy(update={"federation": params.federation.model_copy(update={"mode": "remote"})})
    with pytest.raises(UserError, match="FEDLENS_KIT must name the folder"):
        carried.carried(apart, run)
    with processes.started(own, homes, work / "logs", {}):
        monkeypatch.setenv("FEDLENS_KIT", str(own / jobs.ADMIN))
        found = carried.carried(apart, run)
    for ours, theirs in zip(runs[0][run].history.models, found.history.models, strict=True):
        assert {name: array.tobytes() for name, array in ours.items()} == {n: a.tobytes() for n, a in theirs.items()}


def test_other_parameters_at_a_client_fail_the_run_by_name(project):
    params, run, work = config.load(), SYNTHETIC[1], project.path / ".scratch/nvflare/terms"
    own, homes = carried.laid_out(params, [run], work)
    Project(homes["c2"]).edit(lambda content: content["baselines"]["fedavg"].update(learning_rate=0.01))
    with (
        pytest.raises(UserError, match="c2 and the server have different parameters for this run: settings"),
        carried.network(params, own, homes, work) as network,
    ):
        network.carry(run)


def test_noisy_training_gives_the_same_bytes(runs):
    train_dp_baseline.run(config.load(), "own", "dpsgd")  # in this process, with the same noise for tests
    (store,) = (folder for folder in (paths.ledgers() / "own/releases").iterdir() if (folder / "spent.json").exists())
    here, there = outcome.load_models(store / "rounds.safetensors"), runs[0][NOISY].history.models
    for ours, theirs in zip(here, there, strict=True):
        assert {name: array.tobytes() for name, array in ours.items()} == {n: a.tobytes() for n, a in theirs.items()}
    assert json.loads((store / "spent.json").read_text()) == runs[0][NOISY].spent


def test_each_client_entered_its_own_noisy_run_before_it_answered(runs):
    for mechanisms in runs[2].values():
        assert mechanisms.count("dpsgd") == 1


def test_no_private_image_crosses(runs, project):
    crossed = runs[1]
    shards = [np.load(file)["images"] for file in (project.path / "data/private/own/clients").glob("*/train.npz")]
    assert len(shards) == 3 and all(CANARY in image.tobytes() for images in shards for image in images)
    assert CANARY not in crossed
    for images in shards:
        assert not any(image.tobytes()[:16] in crossed for image in images)
    # what may cross did, and was seen: the sets that sda_fl shares, and the weights of a round
    exported = exports.images("own", CLIENTS, GENERATOR)
    assert all(data.images.tobytes()[:200] in crossed for data in exported.values())
    weights = runs[0][SYNTHETIC[0]].history.models[1]
    assert max(weights.values(), key=np.size).tobytes()[:200] in crossed


def started_stage(project: Project, on_loss: str, rounds: int) -> subprocess.Popen:
    """meta_train as users run it, over the network, until every client has begun."""
    project.edit(lambda p: (p["federation"].update(engine="nvflare", on_loss=on_loss), p["meta"].update(rounds=rounds)))
    command = [sys.executable, "-m", "stages.meta_train", "--dataset", "own", "--generator", GENERATOR]
    shutil.rmtree(project.path / f".scratch/nvflare/own-pppfl-{GENERATOR}", ignore_errors=True)  # logs of one before
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    stage = subprocess.Popen(command, cwd=project.path, env=ENV, **pipes)
    logs = project.path / f".scratch/nvflare/own-pppfl-{GENERATOR}/logs"
    until = time.monotonic() + 120
    while not all((logs / f"{c}.log").exists() and ": ready" in (logs / f"{c}.log").read_text() for c in CLIENTS):
        assert stage.poll() is None and time.monotonic() < until, stage.communicate()
        time.sleep(0.2)
    return stage


def kill(project: Project, client: str) -> None:
    """Its process and the job's, at once."""
    for number in processes._working_in(project.path / f".scratch/nvflare/own-pppfl-{GENERATOR}/homes"):
        home = Path(f"/proc/{number}/environ").read_bytes()
        if f"/homes/{client}\0".encode() in home:
            os.kill(number, signal.SIGKILL)


def test_a_client_that_dies_fails_the_stage_within_seconds(project):
    stage = started_stage(project, "fail", rounds=100_000)
    kill(project, "c1")
    began = time.monotonic()
    said = stage.communicate(timeout=60)[1]
    assert stage.returncode == 1 and "Traceback" not in said
    assert said.startswith("Error: The process of c1 has ended") or "c1 was lost (round" in said
    assert time.monotonic() - began < 30
    assert not Path("models/initial/own").exists()


def test_the_run_goes_on_without_a_dead_client_where_that_is_asked_for(project):
    stage = started_stage(project, "skip", rounds=300)
    kill(project, "c1")
    said, wrong = stage.communicate(timeout=150)
    assert stage.returncode == 0, wrong
    assert "c1 was lost on the way, and the run went on without it" in said
    cost = json.loads((paths.cost("own", GENERATOR) / paths.COST).read_text())
    assert list(cost["lost"]) == ["c1"] and cost["rounds"] == 300


def test_an_interrupted_stage_leaves_no_process(project):
    stage = started_stage(project, "fail", rounds=100_000)
    assert left_in(project)
    stage.send_signal(signal.SIGINT)
    said = stage.communicate(timeout=60)[1]
    assert stage.returncode == 1 and said.strip().endswith("Interrupted.")


def test_a_client_with_anothers_certificate_is_refused(project):
    project.edit(lambda params: params["federation"].update(start_timeout=15.0))
    params, run, work = config.load(), SYNTHETIC[0], project.path / ".scratch/nvflare/foreign"
    own, homes = carried.laid_out(params, [run], work)
    foreign = kits.provision(work / "foreign", CLIENTS, carried.HOST, processes.free_ports(2))
    for name in ("client.crt", "client.key"):  # a certificate for c0, by an authority that is not ours
        shutil.copy(foreign / "c0/startup" / name, own / "c0/startup" / name)
    with (
        pytest.raises(UserError, match=r"After 15 s these clients have not come: c0\."),
        carried.network(params, own, homes, work) as network,
    ):
        network.carry(run)


@pytest.mark.parametrize("kind", ["a class that is not allowed", "code that comes with the job"])
def test_a_client_runs_nothing_that_a_job_brings(kind, project, tmp_path, monkeypatch):
    """A dishonest server: its own policy lets everything pass, the clients' must not."""
    params, run, work, marker = config.load(), SYNTHETIC[0], project.path / ".scratch/nvflare/evil", tmp_path / "ran"
    written = jobs.write

    def evil(folder, *arguments):
        written(folder, *arguments)
        file = folder / "client/config/config_fed_client.json"
        content = json.loads(file.read_text())
        path, given = "subprocess.Popen", {"args": ["touch", str(marker)]}
        if kind == "code that comes with the job":
            (folder / "client/custom").mkdir()
            code = (
                f"import pathlib\nclass Evil:\n    def __init__(self):\n        pathlib.Path({str(marker)!r}).touch()\n"
            )
            (folder / "client/custom/evil.py").write_text(code)
            path, given = "evil.Evil", {}
        content["components"].append({"id": "evil", "path": path, "args": given})
        file.write_text(json.dumps(content))

    monkeypatch.setattr(jobs, "write", evil)
    own, homes = carried.laid_out(params, [run], work)
    local = own / carried.HOST / "local"
    resources = json.loads((local / "resources.json").read_text())
    (local / "resources.json").write_text(json.dumps({**resources, "class_allow_list": ["*"]}))
    policy = json.loads((local / "authorization.json").read_text())
    policy["permissions"]["project_admin"] = "any"
    (local / "authorization.json").write_text(json.dumps(policy))
    with pytest.raises(UserError), carried.network(params, own, homes, work) as network:
        network.carry(run)
    assert not marker.exists()
