"""Random faults, each with a recovery and a full check: no release is lost or spent twice, no
output is half there.

    make test-crash                          # two hundred faults, about twenty minutes on two cores
    make test-crash FAULTS=40 SEED=7         # fewer, or those of an earlier run again: a failure prints its seed

Faults: `kill -9` of a run's process group; two of them without a recovery in between; a disk that
is full for a while; a clock that jumps by up to two days, and then a kill or none. One in eight
befalls a real `dvc repro`, the others one whose stages run in the same process, so that they are
many and fall where our code works.
"""

import contextlib
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from crash.checks import Undisturbed
from crash.runs import ROOM, Disk, Run, age, copied, forked, mounts
from within import Within

from pipelines.recover.recovery import recover

pytestmark = pytest.mark.pipeline

KINDS = {"kill": 8, "two kills": 4, "full disk": 4, "clock": 4}  # of twenty
CELLS = {
    "dp_moments": "train_generator@own-c0-dp_moments",
    "datalens": "train_generator@own-c1-datalens",
    "dpsgd": "train_dp_baseline@own-dpsgd",
}
EVERYTHING = "dvc repro"
# faults of one checkout, before a run that nothing befalls; of `dvc repro`, which takes long
EACH = 5
EACH_WHOLE = 10
REAL = 1 / 8
FULL = 10.0  # seconds for which a disk is full, or until the run has ended
STEP = 8.0  # seconds of a whole `dvc repro` between two faults, at most
MEGABYTES = 64


@dataclass
class World:
    """Holds a project before its first release, and the outputs of its undisturbed run. seconds:
    the longest time that a target's run takes.
    """

    base: Path
    undisturbed: Undisturbed
    seconds: dict[str, float] = field(default_factory=dict)

    def expected(self, target: str) -> tuple[list[str], dict[str, list[str]]]:
        """Returns (outputs, {client: fingerprints}) of a target."""
        entries = self.undisturbed.entries
        opened = {
            client: [entry for entry in its if entry["event"] == "open"]
            for client, its in entries.items()
        }
        if target == EVERYTHING:
            return list(self.undisturbed.outputs), names_of(opened)
        cell = CELLS[target].split("@")[1].split("-")[1:]
        own = {client: its for client, its in opened.items() if len(cell) == 1 or client == cell[0]}
        made = {
            client: [entry for entry in its if entry["mechanism"] == target]
            for client, its in own.items()
        }
        kind = "generators" if len(cell) > 1 else "dp_baselines"
        return ["/".join(["models/private", kind, "own", *cell])], names_of(made)


def names_of(entries: dict[str, list[dict]]) -> dict[str, list[str]]:
    return {client: [entry["fingerprint"] for entry in its] for client, its in entries.items()}


class Campaign:
    """Faults by a seed, and what came of them."""

    def __init__(self, folder: Path, worlds: list[World], seed: int):
        self.folder = folder
        self.worlds = worlds
        self.rng = random.Random(seed)
        self.kinds = dict(KINDS)
        self.counts = Counter()
        self.violations = []
        self.mended = Counter()
        self.places = 0
        if not mounts(folder):
            print(
                "No full disk: this process may not mount a file system (root may, or `unshare -rm`)."
            )
            del self.kinds["full disk"]

    def faults(self, target: str, count: int) -> None:
        """Brings that many faults, a few in each checkout, whose run then goes to its end."""
        each = EACH_WHOLE if target == EVERYTHING else EACH
        for done in range(0, count, each):
            before = len(self.violations)
            self.checkout(target, min(each, count - done))
            print(
                f"{target}: {min(done + each, count)} of {count}",
                *self.violations[before:],
                sep="\n  ",
                flush=True,
            )

    def checkout(self, target: str, count: int) -> None:
        world = self.worlds[self.places % len(self.worlds)]
        self.places = self.places + 1
        kinds = self.rng.choices([*self.kinds], [*self.kinds.values()], k=count)
        place = self.folder / f"checkout-{self.places}"
        disk = Disk(place, MEGABYTES) if "full disk" in kinds else None
        path = place / "fedlens"
        copied(world.base, path)
        os.environ["DVC_SITE_CACHE_DIR"] = str(place / "site")
        try:
            for kind in kinds:
                self.befall(world, path, target, kind, disk)
            self.finish(world, path, target)
        finally:
            if disk:
                disk.remove()

    def befall(self, world: World, path: Path, target: str, kind: str, disk: Disk | None) -> None:
        clock = random.Random(self.rng.random()) if kind == "clock" else None
        if clock:
            age(path, clock)
        for _ in range(2 if kind == "two kills" else 1):
            real = not clock and self.rng.random() < REAL
            run = Run(path, CELLS.get(target), real=real, clock=clock)
            self.disturb(
                run,
                self.delay(world, target, real),
                kind,
                disk,
                f"{target}, {kind}, {path.parent.name}",
            )
        self.counts[target, kind] += 1
        self.mend(world, path, target, kind)

    def delay(self, world: World, target: str, real: bool) -> float:
        """Returns the seconds after which a fault happens."""
        longest = (
            min(world.seconds[target], STEP) if target == EVERYTHING else world.seconds[target]
        )
        return self.rng.uniform(
            0.0, longest * (3.0 if real else 1.05)
        )  # a real one starts Python twice

    def disturb(self, run: Run, delay: float, kind: str, disk: Disk | None, where: str) -> None:
        child = run.start()
        while child.wait(delay) and kind != "clock":  # over sooner than a run that nothing befell
            child.kill()
            child = run.start()
            delay = delay / 2
        if kind == "full disk":
            disk.fill(self.rng.randrange(ROOM))
            child.wait(time.monotonic() - child.began + FULL)
            disk.free()
            if not child.wait():  # DVC's database of hashes may have waited for room
                self.violations.append(f"{where}: the run hung")
            child.kill()
        elif kind == "clock" and self.rng.random() < 0.5:
            if not child.wait():
                self.violations.append(f"{where}: the run hung")
            elif child.status:
                self.violations.append(
                    f"{where}: the run failed: {(run.path.parent / 'said').read_text()[-300:]}"
                )
            child.kill()
        else:
            child.kill()

    def mend(self, world: World, path: Path, target: str, kind: str) -> None:
        """Recovers twice and checks."""
        where = f"{target}, {kind}, {path.parent.name}"
        for again in (False, True):
            try:
                found = forked(lambda: recovered(path), path.parent / "said").result()
            except RuntimeError as error:
                self.violations.append(f"{where}: the recovery failed: {error}")
                return
            if again and found:
                self.violations.append(f"{where}: a second recovery found {found}")
            self.mended.update(phrase.split(",")[0].split("/")[0] for phrase in found)
        self.violations += [f"{where}: {what}" for what in world.undisturbed.broken(path)]

    def finish(self, world: World, path: Path, target: str) -> None:
        """Runs to the end and checks that the result equals an undisturbed one.

        A second run has nothing to do.
        """
        where = f"{target}, at the end, {path.parent.name}"
        targets = [CELLS[target]] if target in CELLS else []
        try:
            Run(path, CELLS.get(target)).undisturbed()
            if again := forked(lambda: Within(path).repro(*targets), path.parent / "said").result():
                self.violations.append(f"{where}: a run of what is made runs {again}")
        except RuntimeError as error:
            self.violations.append(f"{where}: the run failed: {error}")
        self.violations += [
            f"{where}: {what}" for what in world.undisturbed.unlike(path, *world.expected(target))
        ]
        self.counts[target, "at the end"] += 1

    def faults_done(self) -> int:
        return sum(count for (_, kind), count in self.counts.items() if kind in KINDS)

    def table(self) -> str:
        """Faults and violations by target and kind."""
        lines = [f"{'target':<12}{'fault':<12}{'count':>6}{'violations':>12}"]
        for (target, kind), count in sorted(self.counts.items()):
            broken = sum(line.startswith(f"{target}, {kind},") for line in self.violations)
            lines.append(f"{target:<12}{kind:<12}{count:>6}{broken:>12}")
        lines.append(f"{'all faults':<24}{self.faults_done():>6}{len(self.violations):>12}")
        return "\n".join([*lines, *self.violations])


def recovered(path: Path) -> list[str]:
    with contextlib.chdir(path):
        return recover()


def warmed() -> None:
    """Imports what a child would import: the start of Python with torch is most of a tiny stage's
    time.
    """
    import stages.export_synthetic
    import stages.fine_tune
    import stages.meta_train
    import stages.new_clients
    import stages.report
    import stages.train_alone
    import stages.train_baseline
    import stages.train_dp_baseline
    import stages.train_generator  # noqa: F401


def world(project: Within, folder: Path, targets: list[str], exact: bool) -> World:
    """Makes the project; exact: with the test-only noise, which repeats.

    The cells run in a copy. A card names its release by its place in the ledger, and `dvc repro`
    has its own order.
    """
    if exact:
        project.edit(lambda params: params["privacy"].update(noise="seeded_for_tests"))
    os.environ["DVC_SITE_CACHE_DIR"] = str(folder / "site")
    base = folder / "base/fedlens"
    timed = folder / "timed/fedlens"
    whole = project.path
    seconds = {}
    first = ("partition@own", "joint_release@own", "train_alone@own")
    forked(lambda: Within(whole).repro(*first), folder / "said").result()
    for copy in (base, timed):
        copied(whole, copy)
    for target in targets:
        child = Run(timed if target in CELLS else whole, CELLS.get(target)).start()
        child.result()
        seconds[target] = child.lasted
    made = whole if EVERYTHING in targets else timed
    for secret in (made / "ledgers/own").glob(
        "*.secret"
    ):  # salts follow them, and all private folders hold a salt
        (base / "ledgers/own" / secret.name).write_bytes(secret.read_bytes())
    return World(base, Undisturbed(made, exact), seconds)


@pytest.fixture(autouse=True)
def apart(monkeypatch):
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", os.environ.get("DVC_SITE_CACHE_DIR", ""))
    warmed()


def run(
    project: Within, folder: Path, counts: dict[str, int], kinds: list[bool], seed: int
) -> Campaign:
    print(f"seed {seed}")
    worlds = []
    for exact in kinds:
        copied(project.path, folder / f"world-{exact}/fedlens")
        worlds.append(
            world(
                Within(folder / f"world-{exact}/fedlens"),
                folder / f"world-{exact}",
                [*counts],
                exact,
            )
        )
    campaign = Campaign(folder, worlds, seed)
    for target, count in counts.items():
        campaign.faults(target, count)
    print(campaign.table(), dict(campaign.mended), sep="\n")
    return campaign


def test_a_few_faults_lose_nothing_and_spend_nothing_twice(within, tmp_path):
    campaign = run(within, tmp_path, {"dp_moments": 4, "dpsgd": 2}, [True], random.randrange(10**6))
    assert campaign.faults_done() == 6
    assert not campaign.violations, campaign.table()


@pytest.mark.crash
def test_faults_lose_nothing_and_spend_nothing_twice(within, tmp_path):
    faults = int(os.environ.get("FAULTS", "200"))
    seed = int(os.environ.get("SEED", str(random.randrange(10**6))))
    shares = {"dp_moments": 0.3, "datalens": 0.25, "dpsgd": 0.25, EVERYTHING: 0.2}
    counts = {target: int(faults * share) for target, share in shares.items()}
    counts["dp_moments"] += faults - sum(counts.values())
    campaign = run(within, tmp_path, counts, [True, False], seed)
    assert campaign.faults_done() >= faults
    assert not campaign.violations, campaign.table()
