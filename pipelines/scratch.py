"""Keeps folders in the making, and what killed runs left to go on with, below `.scratch`.

Each folder has a lock that its process holds, so that the folder of a dead process is known.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipelines.paths import SCRATCH


@contextlib.contextmanager
def folder(name: str) -> Iterator[Path]:
    """Yields an empty folder `.scratch/partial/NAME.RANDOM/new`, and removes it at the end.

    Removes first what dead processes left, and nothing of live ones. That is no mere tidiness: a
    leftover may hold private records, or another noise draw of a release that is made again and
    charged once. Whoever reads both draws averages the noise away.

    Raises:
        OSError: `.scratch` cannot be written.
    """
    partial = SCRATCH / "partial"
    partial.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as cleanup:
        # else another process takes the folder for dead before it is locked
        with _locked(SCRATCH / "partial.lock"):
            _sweep(partial)
            place = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=partial))
            cleanup.callback(shutil.rmtree, place, ignore_errors=True)
            cleanup.enter_context(_locked(place / "lock"))
        (place / "new").mkdir()
        yield place / "new"


@contextlib.contextmanager
def unfinished(name: str) -> Iterator[Path | None]:
    """Yields `.scratch/unfinished/NAME`, which holds what a killed run needs to go on.

    The folder is private, and holds what was left there. It is removed when the block ends well,
    and does not exist before it is used. Yields None while another process has it.

    Raises:
        OSError: `.scratch` cannot be written.
    """
    parent = SCRATCH / "unfinished"
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.ExitStack() as cleanup:
        try:
            cleanup.enter_context(_locked(parent / f"{name}.lock", fcntl.LOCK_NB))
        except BlockingIOError:
            yield None
            return
        yield parent / name
        shutil.rmtree(parent / name, ignore_errors=True)


def swept() -> int:
    """Removes the folders in the making that dead processes left, and returns their number.

    Raises:
        OSError: `.scratch` cannot be written.
    """
    partial = SCRATCH / "partial"
    if not partial.exists():
        return 0
    with _locked(SCRATCH / "partial.lock"):
        return _sweep(partial)


def remove_whole(path: Path) -> None:
    """Removes a file or folder as a whole: a kill in between leaves it where nothing reads it.

    Raises:
        OSError: `path` cannot be removed, or `.scratch` cannot be written.
    """
    if not path.is_dir():
        path.unlink()
        return
    with folder(path.name) as partial:
        try:
            os.replace(path, partial / "removed")
        except OSError as error:
            # a linked output, or ledgers elsewhere, may lie on another file system
            if error.errno != errno.EXDEV:
                raise
            shutil.rmtree(path)


def _sweep(partial: Path) -> int:
    """Removes the folders below `partial` whose locks nobody holds, and returns their number."""
    removed = 0
    for leftover in partial.iterdir():
        # refused: its process lives
        with contextlib.suppress(OSError), _locked(leftover / "lock", fcntl.LOCK_NB):
            shutil.rmtree(leftover)
            removed += 1
    return removed


@contextlib.contextmanager
def _locked(path: Path, how: int = 0) -> Iterator[None]:
    """Holds an exclusive lock on a file of its own.

    The system frees it when its holder dies; a process id would be reused some day.
    """
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | how)
        yield
