"""Shows what stages print that run at the same time: each stage's lines in one block.

The stage that began first is shown as it prints, with its bars. What the others print is kept until
it is their turn.
"""

import contextlib
import fcntl
import os
import selectors
import sys
import termios
import threading
from collections.abc import Callable, Iterator

# seconds between two looks whether a stage has ended that left an open end to another process
LOOK = 0.1
AT_ONCE = 1 << 16
OUT = 1
ERR = 2
# where this process reads what its stages print, and who may change that: no fork happens in between
_READERS: set[int] = set()
FORKING = threading.Lock()


class Blocks:
    """Puts the blocks one after the other.

    Args:
        write: Shows bytes on one of the streams `OUT` and `ERR`.
    """

    def __init__(self, write: Callable[[int, bytes], None]):
        self.write = write
        self.lock = threading.Lock()
        # {block: what it has not shown yet, its end being None}; the first is shown as it prints
        self.kept: dict[str, list[tuple[int, bytes] | None]] = {}

    def begin(self, name: str) -> None:
        """Notes a block that comes after all others so far."""
        with self.lock:
            self.kept[name] = []

    def say(self, name: str, stream: int, content: bytes) -> None:
        """Takes what the stage of a block prints."""
        with self.lock:
            self.kept[name].append((stream, content))
            self._show()

    def end(self, name: str) -> None:
        """Notes that a block is whole."""
        with self.lock:
            self.kept[name].append(None)
            self._show()

    def _show(self) -> None:
        while self.kept:
            first = next(iter(self.kept))
            parts = self.kept[first]
            while parts:
                part = parts.pop(0)
                if part is None:
                    del self.kept[first]
                    break
                self.write(*part)
            else:
                return


def to_this_process(stream: int, content: bytes) -> None:
    """Writes to this process's own standard output or error.

    Raises:
        OSError: Nobody reads any more.
    """
    file = {OUT: sys.stdout, ERR: sys.stderr}[stream]
    file.flush()
    while content:
        content = content[os.write(file.fileno(), content) :]


class Ends:
    """Connects a stage's standard output and error with a block.

    A stage sees a terminal where this process has one, so that its bars are drawn.
    """

    def __init__(self):
        reader, writer = _ends(OUT)
        # {where this process reads: the stream}
        self.readers = {reader: OUT}
        self.writers = {OUT: writer, ERR: writer}
        if not _same(OUT, ERR):
            reader, self.writers[ERR] = _ends(ERR)
            self.readers[reader] = ERR
        _READERS.update(self.readers)

    def take(self) -> None:
        """Makes them the streams of this process, which is the stage."""
        for stream, writer in self.writers.items():
            os.dup2(writer, stream)
        self.close_writers()
        # also those of the stages beside it: a pipe that nobody else reads must fail
        for reader in _READERS:
            os.close(reader)

    def close_writers(self) -> None:
        """Closes the stage's ends, so that its end is seen."""
        for writer in set(self.writers.values()):
            os.close(writer)

    def close_readers(self) -> None:
        """Closes this process's ends: a stage that still prints fails."""
        with FORKING:
            _READERS.difference_update(self.readers)
            for reader in self.readers:
                os.close(reader)

    def parts(self, ended: Callable[[], bool]) -> Iterator[tuple[int, bytes]]:
        """Yields what the stage prints on which stream, until it ended.

        Args:
            ended: Says whether the process has ended. Another that it started may hold the ends.
        """
        with selectors.DefaultSelector() as selector:
            for reader, stream in self.readers.items():
                selector.register(reader, selectors.EVENT_READ, stream)
            while selector.get_map():
                last = ended()
                ready = selector.select(0 if last else LOOK)
                for key, _ in ready:
                    content = _read(key.fd)
                    if content:
                        yield key.data, content
                    else:
                        selector.unregister(key.fd)
                if last and not ready:
                    return


def _ends(stream: int) -> tuple[int, int]:
    """Returns where to read and where to write: of a pipe, or of a terminal like the stream's."""
    if not os.isatty(stream):
        return os.pipe()
    reader, writer = os.openpty()
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(stream, termios.TIOCGWINSZ, bytes(8))
        fcntl.ioctl(writer, termios.TIOCSWINSZ, size)
    settings = termios.tcgetattr(writer)
    # line ends are made by the real terminal
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(writer, termios.TCSANOW, settings)
    return reader, writer


def _same(*streams: int) -> bool:
    """Returns whether the streams of this process lead to one place."""
    places = set()
    for stream in streams:
        status = os.fstat(stream)
        places.add((status.st_dev, status.st_ino, status.st_rdev))
    return len(places) == 1


def _read(end: int) -> bytes:
    """Returns what can be read, nothing at the end."""
    try:
        return os.read(end, AT_ONCE)
    except OSError:
        # how a terminal without a writer ends
        return b""
