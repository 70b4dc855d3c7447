"""Asks Git itself what it would take."""

import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipelines.errors import UserError

PLAIN = "100"  # what the mode of a file begins with, where it is no link and no submodule
NO_MATCH = 1  # what `git check-ignore` ends with when it ignores none of the names


def tracked(root: Path, *places: str) -> list[str]:
    """Names of the files below `places` that Git tracks, relative to `root`."""
    return _names(_asked(root, "ls-files", "-z", "--", *places))


def takes(root: Path) -> list[str]:
    """Names of all files that Git tracks, also ignored ones, and of those that `git add -A` would add."""
    return sorted(set(_names(_asked(root, "ls-files", "-z", "-co", "--exclude-standard"))))


def staged_apart(root: Path) -> Iterator[tuple[str, bytes]]:
    """(name, content) of the files of which Git's index has another content than the working tree: it would commit it.

    A file in the middle of a merge has several. Links and submodules have none of their own.
    """
    apart = set(_names(_asked(root, "diff-files", "-z", "--name-only")))
    for entry in _names(_asked(root, "ls-files", "-z", "--stage")) if apart else ():
        told, _, name = entry.partition("\t")
        mode, blob, _ = told.split(" ")
        if name in apart and mode.startswith(PLAIN):
            yield name, _asked(root, "cat-file", "blob", blob)


def ignored(root: Path, names: Iterable[str]) -> set[str]:
    """Which of `names`, relative to `root`, Git ignores. They need not exist."""
    lines = "".join(f"{name}\0" for name in names)
    return set(_names(_asked(root, "check-ignore", "--no-index", "-z", "--stdin", given=lines)))


def would_add(folder: Path) -> bool:
    """Returns whether `git add -A` would add files of `folder`, whatever repository it lies in. It may be absent."""
    folder = folder.resolve()
    near = next(place for place in (folder, *folder.parents) if place.is_dir())
    done = _run(near, "rev-parse", "--is-inside-work-tree")
    if done.returncode and b"not a git repository" in done.stderr:
        return False
    _checked(near, done)
    inside = done.stdout.strip() == b"true"
    probe = str(folder / "probe")
    return inside and probe not in ignored(near, [probe])


def _asked(root: Path, *arguments: str, given: str = "") -> bytes:
    """
    Raises:
        UserError: Git cannot answer.
    """
    return _checked(root, _run(root, *arguments, given=given), *arguments)


def _checked(root: Path, done: subprocess.CompletedProcess, *arguments: str) -> bytes:
    none_ignored = arguments[:1] == ("check-ignore",) and done.returncode == NO_MATCH
    if done.returncode and not none_ignored:
        told = done.stderr.decode(errors="replace").strip().splitlines() or [
            f"it ended with {done.returncode}"
        ]
        raise UserError(
            f"Git cannot say what it would take of {root}: {told[0].removeprefix('fatal: ')}."
        )
    return done.stdout


def _run(root: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess:
    # its messages are read above, so they must be English
    environment = {**os.environ, "LC_ALL": "C"}
    command = ["git", "-C", str(root), *arguments]
    try:
        return subprocess.run(
            command, input=os.fsencode(given), capture_output=True, env=environment
        )
    except FileNotFoundError:
        raise UserError(
            f"Git is not installed, so nobody can say what it would take of {root}."
        ) from None


def _names(answer: bytes) -> list[str]:
    return [os.fsdecode(name) for name in answer.split(b"\0") if name]
