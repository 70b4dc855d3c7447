"""Mends a checkout while no DVC is at work, and holds its ledgers against what they were before."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from pipelines import paths, release_store, scratch
from pipelines.errors import UserError
from pipelines.privacy.ledger import Ledger, LedgerError
from pipelines.privacy.ledger.head import parsed
from pipelines.recover import dvc_files
from pipelines.recover.dvc_lock import held

# seconds for which no live Git holds its index
GIT_WAITS = 1.0


def recover() -> list[str]:
    """Mends the checkout in the working directory.

    Returns:
        What was torn, a phrase each. The list is empty where all is whole.

    Raises:
        UserError: DVC or a stage is at work here, or a ledger was tampered with: nothing was
            changed then. Or DVC cannot read a file of its own that no crash explains.
    """
    mended = []
    with held():
        before = _all_entries()
        for mend in (_ledger_tails, dvc_files.mend, _folders, _git):
            mended += mend()
        after = _all_entries()
    for path, entries in before.items():
        if after.get(path, [])[: len(entries)] != entries:
            raise UserError(
                "A ledger holds other releases than before the recovery. Bring `ledgers/` back "
                "from a copy."
            )
    return mended


def proof() -> str:
    """Returns a sentence on the ledgers, which were read line by line and lost nothing.

    Raises:
        UserError: A ledger was tampered with, or has a release twice.
    """
    count = 0
    folders = set()
    for ledger in _ledgers():
        count += sum(entry["event"] == "open" for entry in _entries(ledger))
        folders.add(ledger.path.parent)
    lost = sum(len(release_store.lost(folder)) for folder in folders)
    plural = "" if count == 1 else "s"
    sentence = f"The ledgers are whole: {count} release{plural}, nothing was spent."
    if lost:
        sentence += f" {lost} of them have no stored result here: a run of rounds over a network keeps none."
    unknown = [path for folder in sorted(folders) for path in release_store.unknown(folder)]
    if unknown:
        sentence += (
            f" No entry has {', '.join(map(str, unknown))}: it came of rounds over a network, or "
            "the ledgers are older than it, and their totals are too small."
        )
    return sentence


def _ledgers() -> list[Ledger]:
    """Returns all ledgers. No total is asked of them, so any delta will do."""
    return [Ledger(path, delta=1e-5) for path in sorted(paths.ledgers().glob("*/*.jsonl"))]


def _all_entries() -> dict[Path, list[dict]]:
    """Returns the lines of every ledger by its path."""
    return {ledger.path: _entries(ledger) for ledger in _ledgers()}


def _entries(ledger: Ledger) -> list[dict]:
    """Returns the lines of a ledger.

    Raises:
        UserError: The ledger was tampered with, or has a release twice.
    """
    try:
        entries = ledger.entries()
    except LedgerError as error:
        raise UserError(str(error)) from None
    acts = [(entry["fingerprint"], entry["event"]) for entry in entries]
    if len(acts) != len(set(acts)):
        raise UserError(f"{ledger.path} has a release twice. Bring it back from a copy.")
    return entries


def _ledger_tails() -> Iterator[str]:
    """Removes what follows a ledger's last newline: its writer died before the line counted."""
    for ledger in _ledgers():
        content = _content(ledger.path)
        head = _content(ledger.chain.head)
        if content.endswith(b"\n") and content.count(b"\n") == _lines_at(head):
            continue
        # whoever locks a chain drops its torn line
        with ledger.chain.locked():
            pass
        if content != _content(ledger.path) or head != _content(ledger.chain.head):
            yield f"the last line of {ledger.path}, which was never whole"


def _content(file: Path) -> bytes:
    """Returns what a file holds, nothing where there is none."""
    return file.read_bytes() if file.exists() else b""


def _lines_at(head: bytes) -> int:
    """Returns the number of lines that a ledger's head states, 0 where it is torn."""
    with contextlib.suppress(ValueError):
        return parsed(head).lines
    return 0


def _folders() -> Iterator[str]:
    """Removes folders in the making, and what releases that are closed by now needed to go on."""
    count = scratch.swept()
    if count:
        yield f"{count} folder{'' if count == 1 else 's'} in the making"
    for folder in {ledger.path.parent for ledger in _ledgers()}:
        for leftover in release_store.leftovers(folder):
            scratch.remove_whole(leftover)
            yield f"{leftover}, whose release is made"


def _git() -> Iterator[str]:
    """Removes the lock of Git's index, which a live Git holds for moments."""
    lock = Path(".git/index.lock")
    with contextlib.suppress(FileNotFoundError):
        before = lock.stat()
        time.sleep(GIT_WAITS)
        after = lock.stat()
        if (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns):
            lock.unlink()
            yield f"{lock}, left by a Git that died"
