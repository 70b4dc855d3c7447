"""Keeps an append-only file of JSON lines, each carrying the hash of the line before.

A head file beside it holds the number of lines and the last hash, so that a cut-off tail shows,
too. There is one writer at a time, across processes.

A writer may die, or the disk be full, between the two files. Then the head is one line behind. It
never falls further behind, because whoever appends next brings it up to date first. Nothing here
has a key: whoever can write the files can write another chain.
"""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from pipelines.privacy.ledger import durable, lines
from pipelines.privacy.ledger.head import NONE, START, Head
from pipelines.privacy.ledger.head import parsed as parsed_head
from pipelines.privacy.ledger_folder import LedgerError

__all__ = ["Chain", "LedgerError", "digest"]

BACKUP = (
    "Bring both files back from a backup that is as new as your last release: an older one forgets "
    "what was released since, and its total is too small."
)


class Chain:
    """A chain of lines.

    Attributes:
        path: The file of the lines.
        head: The file of the head.
        writing: True while this object holds the lock for writing.
    """

    def __init__(self, path: Path):
        self.path = path
        self.head = path.with_suffix(".head")
        self.writing = False

    def entries(self) -> list[dict]:
        """Returns all lines, checked.

        It waits for a writer, because between a writer's two files the chain looks cut off.

        Raises:
            LedgerError: A line or the head was edited, removed or cut off.
        """
        if self.writing:
            return self._entries()
        # a writer's first file is the path: without it there is no line, and no lock to leave behind
        if not self.path.exists() and not self.head.exists():
            return []
        with self.flock(".lock", fcntl.LOCK_SH):
            return self._entries()

    def _entries(self) -> list[dict]:
        """Returns all lines, checked, without waiting."""
        if not self.path.exists():
            if self.head.exists():
                raise LedgerError(
                    f"{self.path} is gone, but its head is not: lines were deleted. {BACKUP}"
                )
            return []
        entries = []
        previous = START
        for number, line in enumerate(self._whole_lines(), start=1):
            entry = self._parsed(line, number)
            if entry.get("previous") != previous or entry.pop("hash", None) != digest(entry):
                raise LedgerError(
                    f"{self.path}, line {number}: the chain is broken; a line was edited or "
                    "deleted."
                )
            self._check_fields(entry, number)
            entries.append(entry)
            previous = digest(entry)
        self._check_head(entries)
        return entries

    def append(self, entry: dict) -> None:
        """Adds one line. Call it inside `locked`.

        Raises:
            LedgerError: The chain is damaged.
            OSError: The disk is full, for example. The line was added or not; the chain is whole
                either way.
        """
        entries = self.entries()
        if entries and self._read_head(entries).lines < len(entries):
            durable.replace(self.head, _head_of(entries).as_bytes())
        entry = {**entry, "previous": digest(entries[-1]) if entries else START}
        durable.append(self.path, (canonical({**entry, "hash": digest(entry)}) + "\n").encode())
        durable.replace(self.head, _head_of([*entries, entry]).as_bytes())

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lock for reading and appending as one act.

        A torn last line of a dead writer is removed first.

        Raises:
            LedgerError: The chain is damaged. Then its file is left as it is.
        """
        with self.flock(".lock"):
            self._entries()
            content = self.path.read_bytes() if self.path.exists() else b""
            if content and not content.endswith(b"\n"):
                os.truncate(self.path, content.rfind(b"\n") + 1)
            self.writing = True
            try:
                yield
            finally:
                self.writing = False

    @contextlib.contextmanager
    def flock(self, suffix: str, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
        """Holds a lock on a separate file, which the system frees when its holder dies.

        Args:
            suffix: The ending of the lock's file, beside the chain.
            kind: An exclusive lock, or a shared one.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(suffix).open("w") as lock:
            fcntl.flock(lock, kind)
            yield

    def _whole_lines(self) -> list[bytes]:
        """Returns the lines that end in a newline.

        What follows the last one is a dead writer's torn line.
        """
        return self.path.read_bytes().split(b"\n")[:-1]

    def _parsed(self, line: bytes, number: int) -> dict:
        """Returns what a line holds.

        Raises:
            LedgerError: It holds no mapping.
        """
        try:
            return lines.parsed(line)
        except ValueError as error:
            raise LedgerError(
                f"{self.path}, line {number}: {error}; the line was edited."
            ) from None

    def _check_fields(self, entry: dict, number: int) -> None:
        """Checks the fields of a line.

        Raises:
            LedgerError: One is absent or of another form.
        """
        try:
            lines.check(entry)
        except ValueError as error:
            raise LedgerError(
                f"{self.path}, line {number}: {error}; this program did not write it."
            ) from None

    def _read_head(self, entries: list[dict]) -> Head:
        """Returns the head. A chain of at most one line may lack its file.

        Raises:
            LedgerError: The file is gone or damaged.
        """
        if not self.head.exists() and len(entries) <= 1:
            return NONE
        try:
            return parsed_head(self.head.read_bytes())
        except FileNotFoundError:
            raise LedgerError(
                f"{self.head} is gone, but its {len(entries)} lines are not. "
                f"{self._remedy(entries)}"
            ) from None
        except ValueError as error:
            raise LedgerError(
                f"{self.head} {error}: whether lines were cut off at the end of {self.path.name} "
                f"cannot be told. {self._remedy(entries)}"
            ) from None

    def _check_head(self, entries: list[dict]) -> None:
        """Holds the lines against the head.

        Raises:
            LedgerError: Lines were cut off, exchanged or added.
        """
        head = self._read_head(entries)
        if head.lines > len(entries):
            raise LedgerError(
                f"{self.path}: {head.lines} lines were written, {len(entries)} are there; the end "
                f"was cut off. {BACKUP}"
            )
        if head.hash != _head_of(entries[: head.lines]).hash:
            raise LedgerError(
                f"{self.path}: line {head.lines} is not the one that was written; the head has "
                "another."
            )
        # a writer leaves the head one line behind at most
        if len(entries) > head.lines + 1:
            raise LedgerError(
                f"{self.path}: {head.lines} lines were written, {len(entries)} are there. "
                f"{self._remedy(entries)}"
            )

    def _remedy(self, entries: list[dict]) -> str:
        """Returns a sentence on what to do about a head that does not fit.

        Only its owner can vouch for the end of a chain, because nothing here has a key.
        """
        line = _head_of(entries).as_bytes().decode().strip()
        return (
            f"{BACKUP} If you know instead that all lines of your releases are there and no other, "
            f"write this into {self.head.name}: {line}"
        )


def _head_of(entries: list[dict]) -> Head:
    """Returns the head that belongs to these lines."""
    return Head(len(entries), digest(entries[-1])) if entries else NONE


def canonical(value: object) -> str:
    """Returns the one JSON text of a value, whatever the order of its keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(value: object) -> str:
    """Returns the SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
