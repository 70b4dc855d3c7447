"""An append-only file of JSON lines, each carrying the hash of the one before. A head file beside it holds the number
of lines and the last hash, so that a cut-off tail shows too. One writer at a time, across processes."""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

START = "0" * 64  # the hash before the first line


class LedgerError(Exception):
    """The file was tampered with, or a release is refused. The text is one sentence."""


class Chain:
    def __init__(self, path: Path):
        self.path, self.head, self.writing = path, path.with_suffix(".head"), False

    def entries(self) -> list[dict]:
        """All lines, checked. Waits for a writer: between its two files one looks cut off.

        Raises:
            LedgerError: a line was edited, removed or cut off.
        """
        if self.writing or not self.path.parent.exists():
            return self._entries()
        with self.flock(".lock", fcntl.LOCK_SH):
            return self._entries()

    def _entries(self) -> list[dict]:
        if not self.path.exists():
            if self.head.exists():
                raise LedgerError(f"{self.path} is gone, but its head is not: lines were deleted.")
            return []
        lines = self.path.read_text().split("\n")[:-1]  # what follows the last newline is a dead writer's torn line
        entries, previous = [], START
        for number, line in enumerate(lines, start=1):
            entry = self._parsed(line, number)
            if entry.get("previous") != previous or entry.pop("hash", None) != digest(entry):
                raise LedgerError(f"{self.path}, line {number}: the chain is broken; a line was edited or deleted.")
            entries.append(entry)
            previous = digest(entry)
        self._check_head(entries)
        return entries

    def append(self, entry: dict) -> None:
        """Adds one line; call it inside `locked`."""
        entries = self.entries()
        entry = {**entry, "previous": digest(entries[-1]) if entries else START}
        with self.path.open("a") as file:
            file.write(canonical({**entry, "hash": digest(entry)}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        beside = self.head.with_suffix(".tmp")
        beside.write_text(json.dumps({"lines": len(entries) + 1, "hash": digest(entry)}) + "\n")
        os.replace(beside, self.head)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """For reading and appending as one act. A torn last line of a dead writer is removed first."""
        with self.flock(".lock"):
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
        """A lock on a file of its own beside the chain; the system frees it when its holder dies."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(suffix).open("w") as lock:
            fcntl.flock(lock, kind)
            yield

    def _parsed(self, line: str, number: int) -> dict:
        try:
            return json.loads(line)
        except ValueError:
            raise LedgerError(f"{self.path}, line {number}: not JSON; the line was edited.") from None

    def _check_head(self, entries: list[dict]) -> None:
        head = json.loads(self.head.read_text()) if self.head.exists() else {"lines": 0, "hash": START}
        at_head = digest(entries[head["lines"] - 1]) if 0 < head["lines"] <= len(entries) else START
        # the head may be one line behind: a run can die between the two writes
        if not head["lines"] <= len(entries) <= head["lines"] + 1 or at_head != head["hash"]:
            raise LedgerError(f"{self.path}: {head['lines']} lines were written, {len(entries)} are there.")


def canonical(value) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(value) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()
