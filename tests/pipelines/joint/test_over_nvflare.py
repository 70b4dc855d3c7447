"""Tests a joint release between organisations, as users make it: by processes of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from project import ENV, ROOT

pytest.importorskip("nvflare", reason="needs the extra `flare`")

import apart
from apart import CLIENTS, EPSILON, GENERATOR, Apart

from pipelines import paths
from pipelines.federation.network.flare import kits, names, processes, submit
from pipelines.files import read_arrays, read_json

pytestmark = pytest.mark.engine

FOUR = ("c0", "c1", "c2", "c3")
COMMAND = [sys.executable, "-m", "pipelines.joint", "--dataset", "own"]


@pytest.fixture
def federation(_checkout, tmp_path, monkeypatch) -> Iterator[Apart]:
    """Runs a server and three clients, each in a folder that holds nothing of the others."""
    with started(apart.made(_checkout, tmp_path), tmp_path, monkeypatch) as made:
        yield made


@contextmanager
def started(made: Apart, tmp_path: Path, monkeypatch) -> Iterator[Apart]:
    """Runs a server and the clients of a federation, as long as the block runs."""
    monkeypatch.chdir(made.server.path)
    monkeypatch.setitem(ENV, "PYTHONPATH", str(ROOT))
    ports = processes.free_ports(2)
    folder = kits.provision(tmp_path / "kits", list(made.homes), submit.HOST, ports)
    monkeypatch.setitem(ENV, "FEDLENS_KIT", str(folder / names.ADMIN))
    homes = {submit.HOST: made.server.path}
    homes |= {client: home.path for client, home in made.homes.items()}
    with processes.started(folder, homes, tmp_path / "logs", {}):
        yield made


def opened(federation: Apart, client: str) -> list[dict]:
    path = federation.homes[client].path / f"ledgers/own/{client}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    entries = [json.loads(line) for line in lines]
    return [entry for entry in entries if entry["event"] == "open"]


def test_three_machines_make_one_release_and_each_goes_on_by_itself(federation):
    done = federation.server.run(*COMMAND)
    assert f"own/{GENERATOR}: epsilon {EPSILON:g}" in done.stdout
    assert "c0, c1, c2 made it together in" in done.stdout
    states = []
    for client, home in federation.homes.items():
        (entry,) = opened(federation, client)
        assert entry["parameters"]["client"] == client
        home.stage("joint_release", "--dataset", "own")
        cell = ("--dataset", "own", "--client", client, "--generator", GENERATOR)
        home.stage("train_generator", *cell)
        home.stage("export_synthetic", *cell)
        card = read_json(home.path / paths.synthetic("own", client, GENERATOR) / "card.json")
        assert list(card["together"]) == list(CLIENTS)
        assert card["together"][client] == card["release"]
        place = home.path / paths.joint("own") / GENERATOR / client
        states.append(read_arrays(place / "generator.safetensors"))
    for name, value in states[0].items():
        assert all((state[name] == value).all() for state in states[1:])
    # the server has no record, key or vector, and the submitter no generator
    assert not (federation.server.path / "ledgers").exists()
    assert not (federation.server.path / "models/private/joint").exists()
    # a client with another budget is named, and no ledger is charged
    federation.homes["c1"].edit(lambda params: params["clients"]["c1"].update(epsilon=2.0))
    failed = federation.server.run(*COMMAND, ok=False)
    assert failed.returncode == 1
    assert (
        "c1 and the server have different parameters for this run: budget, sums." in failed.stderr
    )
    # one whose ledger is full stops it, too, before the others pay
    federation.homes["c1"].edit(
        lambda params: params["clients"].update(c1={"epsilon": EPSILON, "lifetime_epsilon": 3.5})
    )
    failed = federation.server.run(*COMMAND, ok=False)
    assert "c1 was lost (ready_together): it refused" in failed.stderr
    assert [len(opened(federation, client)) for client in CLIENTS] == [1, 1, 1]


def has_begun(federation: Apart, client: str) -> bool:
    """Returns whether a client's ledger has entered a release."""
    return bool(opened(federation, client))


def kill(home: Path) -> None:
    """Kills a client's process and the job's, at once."""
    for number in processes._working_in(home.parent):
        environment = Path(f"/proc/{number}/environ").read_bytes()
        if f"{home}\0".encode() in environment:
            os.kill(number, signal.SIGKILL)


@pytest.mark.slow
def test_a_client_that_is_killed_on_the_way_is_left_behind_where_one_may_drop_out(
    _checkout, tmp_path, monkeypatch
):
    made = apart.made(_checkout, tmp_path, FOUR)
    made.edit(_many_sums)
    with started(made, tmp_path, monkeypatch):
        command = [*COMMAND, "--generator", "joint_datalens"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        release = subprocess.Popen(command, cwd=made.server.path, env=ENV, **pipes)
        until = time.monotonic() + 120
        while not has_begun(made, "c1"):
            assert release.poll() is None and time.monotonic() < until
            time.sleep(0.1)
        kill(made.homes["c1"].path)
        said, wrong = release.communicate(timeout=300)
    assert release.returncode == 0, wrong
    assert "c0, c2, c3 made it together in" in said
    assert "c1 has no generator, because it dropped out (" in said
    for client, home in made.homes.items():
        assert len(opened(made, client)) == 1
        assert bool(list(home.path.glob("ledgers/own/releases/*"))) == (client != "c1")


def _many_sums(params: dict) -> None:
    params["synthesis"]["generators"] = ["joint_datalens"]
    params["synthesis"]["joint_datalens"].update(
        steps=20, teachers=12, colluding=1, may_drop=1, weak_plan="warn"
    )
    params["federation"].update(ping_timeout=2.0)


def test_the_submitter_hears_in_a_sentence_what_is_missing(federation, monkeypatch):
    monkeypatch.delitem(ENV, "FEDLENS_KIT")
    failed = federation.server.run(*COMMAND, ok=False)
    assert "FEDLENS_KIT must name the folder of the submitter's start-up kit" in failed.stderr
    federation.server.edit(lambda params: params["federation"].update(mode="local"))
    failed = federation.server.run(*COMMAND, ok=False)
    assert failed.returncode == 1 and "must be 'remote'" in failed.stderr
    assert "Traceback" not in failed.stderr
