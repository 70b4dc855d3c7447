"""kill -9 at random points of a generator run: one release in the ledger, never above plan, outputs complete."""

import random
import signal
import subprocess
import sys
import time

import pytest
from project import ENV

from pipelines.privacy.ledger import Ledger
from pipelines.synthesis import release

CELL = ["--dataset", "own", "--client", "c0", "--generator", "dp_moments"]


def killed_after(project, seconds: float) -> bool:
    """Starts the stage and kills it after that long; whether it was still running then."""
    command = [sys.executable, "-m", "stages.train_generator", *CELL]
    running = subprocess.Popen(command, cwd=project.path, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        running.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGKILL)
        running.wait()
        return True


@pytest.mark.pipeline
def test_twenty_kills_make_one_release(checkout):
    checkout.stage("prepare", "--dataset", "own")
    checkout.stage("partition", "--dataset", "own")
    started = time.monotonic()
    checkout.stage("train_generator", "--dataset", "own", "--client", "c1", "--generator", "dp_moments")
    whole = time.monotonic() - started
    points = random.Random(0).choices(range(100), k=20)
    killed = sum(killed_after(checkout, whole * point / 100) for point in points)
    assert killed >= 5  # how many depends on the machine's load; the others ended first
    checkout.stage("train_generator", *CELL)
    ledger = Ledger(checkout.path / "ledgers/own/c0.jsonl", delta=1e-5)
    assert [entry["event"] for entry in ledger.entries()] == ["open", "close"]
    assert ledger.total_epsilon() <= 10.0
    _, about = release.load(checkout.path / "models/private/generators/own/c0/dp_moments")
    assert ledger.statement(about["fingerprint"])["guarantee"] == "formal"
    assert not list((checkout.path / "ledgers/own/releases").glob(".*"))
