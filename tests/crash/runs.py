"""Makes runs of a tiny project to which a fault happens.

Each is a forked child of a warm process, or a real `dvc repro`.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from project import ENV
from within import Within

# The most bytes that a full disk still has.
ROOM = 200_000
DAYS = 24 * 3600.0
# Seconds after which a run counts as hung.
HUNG = 300.0


@dataclass
class Run:
    """Describes `dvc repro` of a target in `path`, or of everything if the target is None. real:
    whether it has processes of its own, as a user starts it. clock: None, or the source of the
    clock's jumps.
    """

    path: Path
    target: str | None
    real: bool = False
    clock: random.Random | None = None

    def start(self) -> "Child":
        if self.real:
            targets = ["-f", "-s", self.target] if self.target else []
            process = subprocess.Popen(
                [sys.executable, "-m", "dvc", "repro", *targets],
                cwd=self.path,
                env={**ENV, **os.environ},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            return Child(process.pid)
        return forked(self.inside, self.path.parent / "said")

    def inside(self) -> list[str]:
        if self.clock:
            jump(self.clock)
        return reproduced(self.path, self.target)

    def undisturbed(self) -> list[str]:
        """Returns the names of the stages whose command ran."""
        return forked(self.inside, self.path.parent / "said").result()


class Child:
    """Holds a process group that this process started."""

    def __init__(self, pid: int, answer: int | None = None):
        self.pid = pid
        self.answer = answer
        self.status = None
        self.began = time.monotonic()
        self.lasted = 0.0

    def ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None

    def wait(self, seconds: float = HUNG) -> bool:
        """Returns whether it ended by itself within so many seconds from its start."""
        while not self.ended() and time.monotonic() - self.began < seconds:
            time.sleep(0.002)
        return self.ended()

    def kill(self) -> None:
        """Kills the whole group, also processes that outlived its leader."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        while not self.ended():
            time.sleep(0.002)
        if self.answer is not None:
            os.close(self.answer)
            self.answer = None

    def result(self):
        with os.fdopen(self.answer) as answer:
            self.answer = None
            content = answer.read()
        self.wait()
        self.lasted = time.monotonic() - self.began
        if self.status:
            raise RuntimeError(content or f"the child ended with {self.status}")
        return json.loads(content)


def forked(function: Callable[[], object], said: Path) -> Child:
    """Forks a child in a process group of its own that calls `function`.

    `said` takes what it prints.
    """
    reading, writing = os.pipe()
    if pid := os.fork():
        os.close(writing)
        # The child does this, too, but a kill may come before it has.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        return Child(pid, reading)
    code = 1
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        os.close(reading)
        quiet = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number in (1, 2):
            os.dup2(quiet, number)
        os.write(writing, json.dumps(function()).encode())
        code = 0
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(writing, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(code)


def reproduced(path: Path, target: str | None) -> list[str]:
    """Returns the names of the stages whose command ran.

    A target runs even if DVC sees no change, so there is always a run to kill. Its release comes
    from the store once it was made.
    """
    project = Within(path)
    if target is None:
        return project.repro()
    return project.forced(target)


def jump(rng: random.Random) -> None:
    """Makes the clock of this process jump by up to two days, back and forth, several times a
    second.
    """
    real = time.time
    real_ns = time.time_ns
    began = time.time()
    offsets = [rng.uniform(-2 * DAYS, 2 * DAYS) for _ in range(20)]
    period = rng.uniform(0.02, 0.3)

    def offset() -> float:
        return offsets[int((real() - began) / period) % len(offsets)]

    time.time = lambda: real() + offset()
    time.time_ns = lambda: real_ns() + int(offset() * 1e9)


def age(path: Path, rng: random.Random) -> None:
    """Gives files of the checkout times of up to two days ago or ahead.

    A clock that was corrected leaves such times.
    """
    folders = ("ledgers", ".scratch", "models", "data", ".dvc/tmp", ".dvc/cache")
    files = []
    for folder in folders:
        files += filter(Path.is_file, sorted((path / folder).rglob("*")))
    for file in rng.sample(files, min(len(files), 20)):
        at = time.time() + rng.uniform(-2 * DAYS, 2 * DAYS)
        os.utime(file, (at, at))


class Disk:
    """Mounts a small file system at `path`, which can be full. This needs the right to mount."""

    def __init__(self, path: Path, megabytes: int):
        self.path = path
        self.ballast = path / "ballast"
        path.mkdir(parents=True)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", path], check=True
        )

    def fill(self, room: int) -> None:
        about = os.statvfs(self.path)
        free = about.f_bavail * about.f_frsize - room
        if free > 0:
            # A run that writes may be quicker, and leave less room.
            with contextlib.suppress(OSError), self.ballast.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, free)

    def free(self) -> None:
        self.ballast.unlink(missing_ok=True)

    def remove(self) -> None:
        subprocess.run(["umount", "-l", self.path], check=True)


def mounts(folder: Path) -> bool:
    """Returns whether this process may mount."""
    try:
        Disk(folder / "probe", 1).remove()
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def copied(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True)
