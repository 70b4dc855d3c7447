"""Writes files that outlive a power cut: once a call has returned, its bytes are on the disk."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

# some network file systems cannot flush a folder
WITHOUT = (errno.EINVAL, errno.ENOTSUP)


def append(path: Path, content: bytes) -> None:
    """Adds `content` at the end of the file, which is made where there is none.

    After an error the part that was written is taken back where that is possible.

    Raises:
        OSError: The disk is full, for example.
    """
    with _opened(path, os.O_APPEND) as file:
        length = os.fstat(file).st_size
        try:
            _write(file, content)
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(file, length)
            raise
    # the name of a new file must last, too, and that of its folder
    if not length:
        flush_folder(path.parent)
        flush_folder(path.parent.parent)


def replace(path: Path, content: bytes) -> None:
    """Replaces the file's content: whoever reads sees all of the old one or all of the new one.

    Raises:
        OSError: The disk is full, for example. The file is as before, or as it is to be.
    """
    beside = path.with_suffix(".tmp")
    with _opened(beside, os.O_TRUNC) as file:
        _write(file, content)
    os.replace(beside, path)
    flush_folder(path.parent)


@contextlib.contextmanager
def _opened(path: Path, how: int) -> Iterator[int]:
    """Yields a descriptor of a file for writing, and closes it."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o666)
    try:
        yield file
    finally:
        os.close(file)


def _write(file: int, content: bytes) -> None:
    """Writes all of the content and flushes it."""
    # a nearly full disk takes a part
    while content:
        content = content[os.write(file, content) :]
    os.fsync(file)


def flush_files(folder: Path) -> None:
    """Flushes every file below the folder, and the names that they have there.

    Raises:
        OSError: The disk is full, for example.
    """
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            flush_folder(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())


def flush_folder(path: Path) -> None:
    """Flushes the names in a folder, so that a rename there outlives a power cut."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in WITHOUT:
            raise
    finally:
        os.close(folder)
