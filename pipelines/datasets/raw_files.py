"""Lists the files below a folder of raw images, and refuses those that DVC cannot read.

    python -m pipelines.datasets.raw_files

checks the folder `prepare.root`, and exits with 1 where DVC would stop or wait. DVC opens every
file of that folder before a stage begins. It waits for ever on a pipe, and it ends in an error of
its own on a link that leads nowhere.
"""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from pipelines.errors import UserError, printable, told_in_a_sentence

# of files, in one message
MOST_NAMES = 10
SPECIAL = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def below(folder: Path) -> Iterator[os.DirEntry]:
    """Yields every entry below `folder`, at any depth; follows no link.

    Raises:
        UserError: A folder cannot be listed, so that its images would be left out.
    """
    waiting = [os.fspath(folder)]
    while waiting:
        path = waiting.pop()
        try:
            with os.scandir(path) as scan:
                entries = list(scan)
        except OSError as error:
            raise UserError(f"{printable(path)} cannot be read: {error.strerror}.") from None
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)


def is_folder(entry: os.DirEntry) -> bool:
    """Returns True if `entry` is a folder or a link to one."""
    try:
        return entry.is_dir()
    except OSError:
        # a link in a circle
        return False


def oddity(entry: os.DirEntry) -> str | None:
    """Returns what `entry` is, "a pipe" for example, or None.

    None is a file, a folder or a link to one.
    """
    try:
        kind = stat.S_IFMT(entry.stat().st_mode)
    except OSError:
        return "a link that leads nowhere" if entry.is_symlink() else "not readable"
    return SPECIAL.get(kind)


def some(names: list[str]) -> str:
    """Returns the first names, printable, and how many follow.

    >>> some(["a.png", "b.png"])
    'a.png, b.png'
    """
    first = ", ".join(map(printable, names[:MOST_NAMES]))
    return f"{first} and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else first


def check(root: Path) -> None:
    """Refuses a folder that holds what DVC cannot read. A root that is absent passes.

    Raises:
        UserError: With a sentence for each kind of entry that DVC cannot read.
    """
    refused: dict[str, list[str]] = {}
    for entry in below(root) if root.is_dir() else ():
        kind = oddity(entry) or _unwritable(entry.name)
        if kind:
            refused.setdefault(kind, []).append(entry.path)
    sentences = []
    for kind, names in sorted(refused.items()):
        sentences.append(
            f"DVC cannot read {len(names)} of the names in {printable(root)}, each of which is "
            f"{kind}: {some(sorted(names))}. Remove or rename them."
        )
    if sentences:
        raise UserError("\n".join(sentences))


def _unwritable(name: str) -> str | None:
    """Returns "not UTF-8" for a name that DVC's data base cannot hold, which takes UTF-8 alone."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return "not UTF-8"
    return None


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    from pipelines import config

    with told_in_a_sentence():
        check(Path(config.load().prepare.root))
