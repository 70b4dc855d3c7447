"""kill -9 of a real `dvc repro`, DVC and stage together: one release in the ledger, never above plan, outputs complete.

Twenty kills (slow): fourteen of a `dp_moments` cell, six of a `datalens` cell, whose start is dear. tests/crash has
other faults, and a few of them in CI. These fall where our code works rather than evenly over DVC's start: more than
half while the release is being made (its lock is held, the ledger's entry is open), some after it (copying, DVC's own
book-keeping), some anywhere. An undisturbed run of another client's cell says how long each part takes and which files
there should be.
"""

import contextlib
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from project import ENV, Project
from ruamel.yaml import YAML, YAMLError

from pipelines.privacy.ledger import Ledger
from pipelines.synthesis import release

pytestmark = [pytest.mark.pipeline, pytest.mark.slow]

PLAN = {"c0": 10.0, "c1": 3.0}
FOURTEEN, SIX = {"making": 8, "after": 3, "anywhere": 3}, {"making": 4, "after": 1, "anywhere": 1}


@dataclass
class Cell:
    """Holds the cell train_generator@own-CLIENT-GENERATOR of a project."""

    project: Project
    client: str
    generator: str

    @property
    def target(self) -> str:
        return f"train_generator@own-{self.client}-{self.generator}"

    @property
    def output(self) -> Path:
        return self.project.path / "models/private/generators/own" / self.client / self.generator

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.project.path / f"ledgers/own/{self.client}.jsonl", delta=1e-5)

    def start(self) -> subprocess.Popen:
        """Runs the stage even if DVC sees no change (-f).

        Then its release comes from the ledger's store.
        """
        command = [sys.executable, "-m", "dvc", "repro", "-f", "-s", self.target]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(
            command, cwd=self.project.path, env=ENV, start_new_session=True, **silent
        )

    def making(self, wait: bool = False) -> bool:
        """Returns whether a process holds the release's lock; with `wait`, it waits until none
        does.
        """
        with (
            contextlib.suppress(FileNotFoundError),
            self.ledger.path.with_suffix(".making").open() as lock,
        ):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                return True
        return False

    def phases(self, running: subprocess.Popen):
        """Yields (seconds, phase) until the run ends: `before` the release's lock is held, `making`, `after`."""
        phase, started = "before", time.monotonic()
        while running.poll() is None:
            phase = "making" if self.making() else "before" if phase == "before" else "after"
            yield time.monotonic() - started, phase
            time.sleep(0.001)

    def undisturbed(self) -> dict[str, float]:
        """Returns the seconds of each phase of a run that nobody kills."""
        running, ends = self.start(), {}
        for seconds, phase in self.phases(running):
            ends[phase] = seconds
        assert running.returncode == 0 and list(ends) == ["before", "making", "after"]
        lasted = {phase: ends[phase] - begun for phase, begun in zip(ends, [0.0, *ends.values()])}
        return {**lasted, "anywhere": ends["after"]}

    def kill(self, phase: str, delay: float) -> str:
        """Kills as `killed` does.

        It tries again with half the delay if the run ended sooner than the measured one.
        """
        hits = (self.killed(phase, delay / 2**attempt) for attempt in range(8))
        return next(hit for hit in hits if hit != "ended")

    def killed(self, phase: str, delay: float) -> str:
        """Runs the cell and kills it `delay` seconds into the phase.

        It returns the phase it was really in, or `ended`.
        """
        running, due = self.start(), None
        for seconds, now in self.phases(running):
            if due is None and phase in (now, "anywhere"):
                due = seconds + delay
            if due is not None and seconds >= due:
                os.killpg(running.pid, signal.SIGKILL)
                break
        assert running.wait() in (0, -signal.SIGKILL)  # nothing but a kill ends a run badly
        self.making(wait=True)
        return now if running.returncode else "ended"


def torn(project: Project) -> bool:
    """Returns whether DVC died while it rewrote one of its own two files in place."""
    locks, results = project.path / ".dvc/tmp/rwlock", project.path / "dvc.lock"
    try:
        if locks.exists():
            json.loads(locks.read_text())
        return results.exists() and "schema" not in (
            YAML(typ="safe").load(results.read_text()) or {}
        )
    except (ValueError, YAMLError):
        return True


def check(cell: Cell) -> None:
    """Checks what must hold at any time, whatever was killed."""
    events = [entry["event"] for entry in cell.ledger.entries()]  # raises where the chain is broken
    assert events in ([], ["open"], ["open", "close"])
    assert cell.ledger.total_epsilon() <= PLAN[cell.client]
    assert len(leftovers(cell.project)) <= 1  # the last kill's: each run removes the one before


def leftovers(project: Project) -> list[Path]:
    return [*(project.path / ".scratch/partial").glob("*")]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("generator", "client", "other", "asked"),
    [
        pytest.param("dp_moments", "c0", "c1", FOURTEEN, id="fourteen"),
        pytest.param("datalens", "c1", "c0", SIX, id="six"),
    ],
)
def test_kills_make_one_release(checkout, generator, client, other, asked):
    checkout.repro("joint_release@own")
    cell, whole = Cell(checkout, client, generator), Cell(checkout, other, generator)
    lasts = whole.undisturbed()
    rng, hits = random.Random(), Counter()
    for phase, count in asked.items():
        for part in range(count):  # one random point in each of `count` equal parts of the phase
            delay = lasts[phase] * (part + rng.random()) / count
            hits[cell.kill(phase, delay)] += 1
            check(cell)
            if torn(checkout):
                checkout.run(sys.executable, "-m", "pipelines.recover")
    print(generator, {phase: round(seconds, 2) for phase, seconds in lasts.items()}, dict(hits))
    assert hits["making"] > asked["making"] // 2 and hits["after"] > 0
    checkout.dvc("repro", "-s", cell.target)
    check(cell)
    assert [entry["event"] for entry in cell.ledger.entries()] == ["open", "close"]
    assert leftovers(checkout) == []
    assert (
        names(cell.output) == names(whole.output)
        and len(names(checkout.path / "ledgers/own/releases")) == 2
    )
    state, about = release.load(cell.output)
    assert cell.ledger.statement(about["fingerprint"])["guarantee"] == "formal"
    assert set(state) == set(release.load(whole.output)[0])
    assert "up to date" in checkout.dvc("status", cell.target).stdout
