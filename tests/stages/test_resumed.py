"""Tests kill -9 of a stage that trains for long.

The next run continues where it was, and ends in the same bytes.
"""

import shutil
import subprocess
import sys
import time

import pytest
from project import ENV


@pytest.mark.pipeline
def test_a_killed_datalens_run_goes_on_and_ends_in_the_same_bytes(checkout):
    """The noise is the test's, the only one that repeats.

    A run killed twice is compared with one that was not killed.
    """

    def change(params):
        params["privacy"]["noise"] = "seeded_for_tests"
        params["profiles"]["own"]["synthesis"]["datalens"]["steps"] = 100

    checkout.edit(change)
    checkout.here("prepare", "--dataset", "own")
    checkout.here("partition", "--dataset", "own")
    cell = ["--dataset", "own", "--client", "c0", "--generator", "datalens"]
    unfinished = checkout.path / "ledgers/own/releases"

    def votes() -> list:
        return list(unfinished.glob(".*.unfinished/votes"))

    def killed_in_mid_course() -> bytes:
        command = [sys.executable, "-m", "stages.train_generator", *cell]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, cwd=checkout.path, env=ENV, **quiet) as running:
            before = votes()[0].stat().st_size if votes() else 0
            while running.poll() is None and not (
                votes() and votes()[0].stat().st_size > before + 130_000
            ):
                time.sleep(0.01)
            assert running.poll() is None, "it ended before it could be killed"
            running.kill()
        return votes()[0].read_bytes()

    first, second = killed_in_mid_course(), killed_in_mid_course()
    assert second.startswith(first)
    checkout.here("train_generator", *cell)
    out = checkout.path / "models/private/generators/own/c0/datalens/generator.safetensors"
    resumed = out.read_bytes()
    shutil.rmtree(checkout.path / "ledgers")
    checkout.here("train_generator", *cell)
    assert out.read_bytes() == resumed
    assert not votes() and not list(unfinished.glob(".*"))


ROUNDS = """
import sys
from pipelines.federation.core import checkpoints
checkpoints.EVERY = 0.0
import runpy
from pipelines.federation.inprocess import InProcess
call = InProcess.call
InProcess.call = lambda self, payload: print("round", payload.scalars["round"], flush=True) or call(self, payload)
sys.argv = ["stages.meta_train", "--dataset", "own", "--generator", "dp_moments"]
runpy.run_module("stages.meta_train", run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.pipeline
def test_killed_rounds_go_on_and_end_in_the_same_bytes(checkout):
    checkout.edit(lambda params: params["meta"].update(rounds=60))
    checkout.repro("meta_train@own-dp_moments")
    out = checkout.path / "models/initial/own/dp_moments"
    whole = {path.name: path.read_bytes() for path in out.iterdir()}
    shutil.rmtree(out)
    unfinished = checkout.path / ".scratch/unfinished/meta_train-own-dp_moments"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(
        [sys.executable, "-c", ROUNDS], cwd=checkout.path, env=ENV, **quiet
    ) as running:
        while running.poll() is None and not [*unfinished.glob("*.rounds")]:
            time.sleep(0.01)
        assert running.poll() is None, "it ended before it could be killed"
        running.kill()
    assert not out.exists() and unfinished.stat().st_mode & 0o077 == 0
    done = checkout.run(sys.executable, "-c", ROUNDS)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == whole
    assert not unfinished.exists()
    begun = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("round ")]
    assert begun[0] > 1 and begun == [*range(begun[0], 61)]
