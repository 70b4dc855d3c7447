"""Asks Git itself what it would take."""

import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipelines.errors import UserError

# the mode of a file begins with it, unless it is a link or a submodule
PLAIN = "100"
# `git check-ignore` ends with it when it ignores none of the names
NO_MATCH = 1


def tracked(root: Path, *places: str) -> list[str]:
    """Returns the names, relative to `root`, of the files below `places` that Git tracks."""
    return _names(_output(root, "ls-files", "-z", "--", *places))


def takes(root: Path) -> list[str]:
    """Returns the names of all files that Git tracks or that `git add -A` would add.

    Tracked files count even if they are ignored.
    """
    return sorted(set(_names(_output(root, "ls-files", "-z", "-co", "--exclude-standard"))))


def staged_apart(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yields name and content of the files whose content in Git's index differs from the tree's.

    Git would commit the content in the index. A file in the middle of a merge has several. Links
    and submodules have no content of their own.
    """
    # unlike `diff-files`, it reads a file whose times alone have changed, as in a copy of a checkout
    differ = ("-c", "diff.autoRefreshIndex=true", "diff", "--no-renames", "--no-ext-diff")
    names = _output(root, *differ, "--name-only", "--no-relative", "-z")
    apart = set(_names(names))
    if not apart:
        return
    for entry in _names(_output(root, "ls-files", "-z", "--stage")):
        facts, _, name = entry.partition("\t")
        mode, blob, _ = facts.split(" ")
        if name in apart and mode.startswith(PLAIN):
            yield name, _output(root, "cat-file", "blob", blob)


def ignored(root: Path, names: Iterable[str]) -> set[str]:
    """Returns those of `names`, relative to `root`, that Git ignores. They need not exist."""
    lines = "".join(f"{name}\0" for name in names)
    return set(_names(_output(root, "check-ignore", "--no-index", "-z", "--stdin", given=lines)))


def would_add(folder: Path) -> bool:
    """Returns whether `git add -A` would add files of a folder, in whatever repository it lies.

    The folder need not exist.
    """
    folder = folder.resolve()
    near = next(place for place in (folder, *folder.parents) if place.is_dir())
    done = _run(near, "rev-parse", "--is-inside-work-tree")
    if done.returncode and b"not a git repository" in done.stderr:
        return False
    _checked(near, done)
    inside = done.stdout.strip() == b"true"
    probe = str(folder / "probe")
    return inside and probe not in ignored(near, [probe])


def _output(root: Path, *arguments: str, given: str = "") -> bytes:
    """Returns what a Git command prints.

    Raises:
        UserError: Git cannot answer.
    """
    return _checked(root, _run(root, *arguments, given=given), *arguments)


def _checked(root: Path, done: subprocess.CompletedProcess, *arguments: str) -> bytes:
    """Returns what a Git command printed.

    Raises:
        UserError: The command failed.
    """
    none_ignored = arguments[:1] == ("check-ignore",) and done.returncode == NO_MATCH
    if done.returncode and not none_ignored:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[0] if lines else f"it ended with {done.returncode}"
        raise UserError(
            f"Git cannot say what it would take of {root}: {reason.removeprefix('fatal: ')}."
        )
    return done.stdout


def _run(root: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess:
    """Runs a Git command in `root`, with `given` as its input.

    Raises:
        UserError: Git is not installed.
    """
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
    """Returns the names in what Git printed with zeros between them."""
    return [os.fsdecode(name) for name in answer.split(b"\0") if name]
