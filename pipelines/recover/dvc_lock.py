"""Holds DVC's lock, so that nothing of DVC is at work in a checkout that is mended."""

import contextlib
import fcntl
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from pipelines.errors import UserError
from pipelines.recover.dvc_files import DVC


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Holds DVC's lock, so that no DVC begins meanwhile.

    Raises:
        UserError: DVC or a stage is at work.
    """
    if not DVC.exists():
        yield
        return
    with (DVC / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _refusal("DVC is") from None
        # DVC lays its lock down while a stage runs
        process = next(_at_work(), None)
        if process is not None:
            raise _refusal(f"DVC or a stage (process {process}) is")
        yield


def _refusal(subject: str) -> UserError:
    """Returns the error that refuses to mend a checkout while somebody is at work."""
    return UserError(
        f"{subject} at work in this checkout: wait until it has ended, or end it. "
        "Nothing was changed."
    )


def _at_work() -> Iterator[int]:
    """Yields processes of this checkout that are DVC's, or a stage that outlived its DVC."""
    checkout = Path.cwd()
    for process in Path("/proc").glob("[0-9]*"):
        # refused: the process has ended, or is another user's
        with contextlib.suppress(OSError, ValueError):
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            inside = Path(os.readlink(process / "cwd")).is_relative_to(checkout)
            if inside and int(process.name) != os.getpid() and _is_work(words):
                yield int(process.name)


def _is_work(words: list[str]) -> bool:
    """Returns whether a command line is DVC's or a stage's."""
    # dvc itself, or Python with its script
    if any(Path(word).name == "dvc" for word in words[:2]):
        return True
    modules = [name for option, name in itertools.pairwise(words) if option == "-m"]
    return any(name == "dvc" or name.startswith("stages.") for name in modules)
