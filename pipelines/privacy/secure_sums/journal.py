"""Keeps a client's steps on the disk, so that a killed client goes on or refuses.

Each answer is written, and flushed, before it leaves. A client that was killed before that has sent
nothing, and makes the step anew. One that was killed after it sends the same bytes again. What a
round began is never begun again, also after its end.

A release is claimed before its vector is drawn. A vector is then masked in one round alone, ever:
two sums with the same noise over different clients would differ by one client's vector. A round that
fails after it needs another release, with noise and a ledger entry of its own.

The folder holds the keys of an unfinished round, for this user alone. Whoever brings back an old
copy of it, or runs on a copy of the machine, answers twice: do neither.
"""

import fcntl
import os
from pathlib import Path
from typing import Protocol

from pipelines.privacy.ledger import durable
from pipelines.privacy.secure_sums.encoding import digest
from pipelines.privacy.secure_sums.memory import Memory, parsed
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.terms import Terms


class Journal(Protocol):
    """Any place where a client keeps its steps."""

    def load(self, terms: Terms) -> Memory:
        """Returns what the client did in this round; a new memory before its first step.

        Raises:
            Refusal: The round was begun under other terms, or its file is damaged.
        """

    def save(self, terms: Terms, memory: Memory) -> None:
        """Keeps a step. Its answer may leave only after this call has returned."""

    def claim(self, terms: Terms) -> None:
        """Claims the release of these terms for their round.

        Raises:
            Refusal: Another round claimed it.
        """


class Volatile:
    """Keeps a client's steps in this process. Nothing outlives a kill.

    It serves where a killed client goes on with nothing: in simulations, and where each attempt has
    noise and a ledger's entry of its own.
    """

    def __init__(self):
        self._contents: dict[str, bytes] = {}

    def load(self, terms: Terms) -> Memory:
        """Returns what the client did in this round."""
        return _loaded(self._read(_round_name(terms)), terms)

    def save(self, terms: Terms, memory: Memory) -> None:
        """Keeps a step."""
        self._write(_round_name(terms), terms.digest + memory.as_bytes())

    def claim(self, terms: Terms) -> None:
        """Claims the release of these terms for their round."""
        name = _release_name(terms)
        claimed = self._read(name)
        if claimed not in (None, terms.digest):
            raise Refusal(
                f"A vector of the release {terms.release!r} was masked in another round. A second "
                "sum with it could show single vectors: enter a new release, with its own noise."
            )
        self._write(name, terms.digest)

    def _read(self, name: str) -> bytes | None:
        return self._contents.get(name)

    def _write(self, name: str, content: bytes) -> None:
        self._contents[name] = content


class Folder(Volatile):
    """Keeps a client's steps in a folder, which one process holds at a time.

    Args:
        path: The folder, for this client and this user alone. It is made where there is none.

    Raises:
        Refusal: Another process holds it.
        OSError: The folder cannot be written.
    """

    def __init__(self, path: Path):
        self.path = path
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.chmod(0o700)
        self._lock = os.open(path / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise Refusal(f"Another process holds {path}: end it, or wait for it.") from None

    def close(self) -> None:
        """Lets another process hold the folder. The system does the same where a holder dies."""
        os.close(self._lock)

    def _read(self, name: str) -> bytes | None:
        file = self.path / name
        return file.read_bytes() if file.exists() else None

    def _write(self, name: str, content: bytes) -> None:
        durable.replace(self.path / name, content)


def _round_name(terms: Terms) -> str:
    """Returns the file of a round: that of its run and number, whatever its other terms."""
    return f"round-{digest(terms.run, terms.round).hex()}"


def _release_name(terms: Terms) -> str:
    """Returns the file that says by which round a release was claimed."""
    return f"release-{digest(terms.release).hex()}"


def _loaded(content: bytes | None, terms: Terms) -> Memory:
    """Returns the memory that a file holds; a new one where there is no file.

    Raises:
        Refusal: It is of other terms, or damaged.
    """
    if content is None:
        return Memory()
    size = len(terms.digest)
    if content[:size] != terms.digest:
        raise Refusal(
            f"Round {terms.round} of the run {terms.run!r} was begun under other terms. Give the "
            "new terms a new round."
        )
    try:
        return parsed(content[size:])
    except ValueError:
        raise Refusal(
            f"The journal of round {terms.round} is damaged, so that nobody knows what was "
            "answered. Begin a new round."
        ) from None
