"""Tests stages over the network as users run them: when all goes well, when a client dies, when the
user gives up.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from project import ENV, Project

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from network import CLIENTS, GENERATOR, left_in

from pipelines import paths
from pipelines.federation.network.flare import processes
from pipelines.privacy.ledger import Ledger

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("inside")]


def started_stage(project: Project, on_loss: str, rounds: int) -> subprocess.Popen:
    """Starts meta_train as users run it, over the network, and waits until it tells of a round."""
    project.edit(
        lambda p: (
            p["federation"].update(engine="nvflare", on_loss=on_loss),
            p["meta"].update(rounds=rounds),
        )
    )
    command = [
        sys.executable,
        "-m",
        "stages.meta_train",
        "--dataset",
        "own",
        "--generator",
        GENERATOR,
    ]
    shutil.rmtree(
        project.path / f".scratch/nvflare/own-pppfl-{GENERATOR}", ignore_errors=True
    )  # logs of one before
    terminal = project.path / ".scratch/terminal.txt"
    terminal.parent.mkdir(exist_ok=True)
    with terminal.open("w") as said:
        pipes = {"stdout": said, "stderr": subprocess.PIPE, "text": True}
        stage = subprocess.Popen(command, cwd=project.path, env=ENV, **pipes)
    until = time.monotonic() + 300
    while f" of {rounds}\n" not in terminal.read_text():
        if stage.poll() is not None or time.monotonic() > until:
            # its own rounds would take for ever
            stage.send_signal(signal.SIGINT)
            pytest.fail(f"No round was told of. The stage said: {stage.communicate()[1]}")
        time.sleep(0.2)
    return stage


def terminal_of(project: Project) -> str:
    """Returns what a started stage has printed."""
    return (project.path / ".scratch/terminal.txt").read_text()


def kill(project: Project, client: str) -> None:
    """Kills the client's process and the job's, at once."""
    for number in processes._working_in(
        project.path / f".scratch/nvflare/own-pppfl-{GENERATOR}/homes"
    ):
        home = Path(f"/proc/{number}/environ").read_bytes()
        if f"/homes/{client}\0".encode() in home:
            os.kill(number, signal.SIGKILL)


def test_a_client_that_dies_fails_the_stage_within_seconds(project):
    shutil.rmtree("models/initial", ignore_errors=True)
    stage = started_stage(project, "fail", rounds=100_000)
    kill(project, "c1")
    began = time.monotonic()
    said = stage.communicate(timeout=60)[1]
    assert stage.returncode == 1 and "Traceback" not in said
    assert said.startswith("Error: The process of c1 has ended") or "c1 was lost (round" in said
    assert time.monotonic() - began < 30
    terminal = terminal_of(project)
    assert "is there (3 of 3)." in terminal
    assert re.search(
        r"  Job \S+ is submitted\. The logs lie in \S+/logs until all went well\.\n", terminal
    )
    assert re.search(r"^  \d+ s: round \d+ of 100000$", terminal, re.MULTILINE)
    assert not Path("models/initial/own").exists()


@pytest.mark.slow
def test_the_run_goes_on_without_a_dead_client_where_that_is_asked_for(project):
    stage = started_stage(project, "skip", rounds=200)
    kill(project, "c1")
    wrong = stage.communicate(timeout=150)[1]
    assert stage.returncode == 0, wrong
    said = terminal_of(project)
    assert "c1 was lost on the way, and the run went on without it" in said
    cost = json.loads((paths.cost("own", GENERATOR) / paths.COST).read_text())
    assert list(cost["lost"]) == ["c1"] and cost["rounds"] == 200


@pytest.mark.slow
def test_an_interrupted_stage_leaves_no_process(project):
    stage = started_stage(project, "fail", rounds=100_000)
    assert left_in(project)
    stage.send_signal(signal.SIGINT)
    said = stage.communicate(timeout=60)[1]
    assert stage.returncode == 1 and "Interrupted. Run `make repro` again" in said


@pytest.mark.slow
def test_noisy_training_over_the_network_is_made_once(project):
    project.edit(lambda params: params["federation"].update(engine="nvflare", on_loss="fail"))
    project.stage("train_alone", "--dataset", "own")
    of = ("train_dp_baseline", "--dataset", "own", "--algorithm", "dpsgd")
    assert "own dpsgd: " in project.stage(*of).stdout
    assert "nothing is spent" in project.stage(*of).stdout
    folder = paths.dp_baseline("own", "dpsgd") / "dpsgd"
    assert set(json.loads((folder / "spent.json").read_text())) == set(CLIENTS)
    assert json.loads((folder / "cost.json").read_text())["rounds"] == 3
    for client in CLIENTS:
        ledger = Ledger(paths.ledgers() / "own" / f"{client}.jsonl", delta=1e-5)
        assert [
            entry["event"] for entry in ledger.entries() if entry.get("mechanism") == "dpsgd"
        ] == ["open"]
