"""Folders in the making, and what a killed run left to go on with: each with a lock that its process holds."""

import contextlib
import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipelines.paths import SCRATCH


@contextlib.contextmanager
def folder(name: str) -> Iterator[Path]:
    """Yields an empty folder `.scratch/partial/NAME.RANDOM/new`; what is still there at the end vanishes.

    Removes first what dead processes left, and nothing of live ones. That is no mere tidiness: a leftover may hold
    private records, or another noise draw of a release that is made again and charged once. Whoever reads both draws
    averages the noise away.

    Raises:
        OSError: `.scratch` cannot be written.
    """
    partial = SCRATCH / "partial"
    partial.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        with _locked(
            SCRATCH / "partial.lock"
        ):  # or another process takes a folder for dead before it is locked
            _sweep(partial)
            own = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=partial))
            held.callback(shutil.rmtree, own, ignore_errors=True)
            held.enter_context(_locked(own / "lock"))
        (own / "new").mkdir()
        yield own / "new"


@contextlib.contextmanager
def unfinished(name: str) -> Iterator[Path | None]:
    """Yields `.scratch/unfinished/NAME`, for what a killed run needs to go on: private, there as it was left, and
    removed when the block ends well. None while another process has it. It does not exist before it is used.

    Raises:
        OSError: `.scratch` cannot be written.
    """
    parent = SCRATCH / "unfinished"
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(_locked(parent / f"{name}.lock", fcntl.LOCK_NB))
        except BlockingIOError:
            yield None
            return
        yield parent / name
        shutil.rmtree(parent / name, ignore_errors=True)


def swept() -> int:
    """Removes the folders in the making that dead processes left. How many there were.

    Raises:
        OSError: `.scratch` cannot be written.
    """
    partial = SCRATCH / "partial"
    if not partial.exists():
        return 0
    with _locked(SCRATCH / "partial.lock"):
        return _sweep(partial)


def _sweep(partial: Path) -> int:
    removed = 0
    for leftover in partial.iterdir():
        with (
            contextlib.suppress(OSError),
            _locked(leftover / "lock", fcntl.LOCK_NB),
        ):  # refused: its process lives
            shutil.rmtree(leftover)
            removed += 1
    return removed


@contextlib.contextmanager
def _locked(path: Path, how: int = 0) -> Iterator[None]:
    """An exclusive lock on a file of its own, freed when its holder dies; a process id would be reused some day."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | how)
        yield
