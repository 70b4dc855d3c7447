"""The store of releases: where the result of each one lies, beside the ledgers that enter it.

A result lies in `ledgers/DATASET/releases/HASH`, private like the ledgers. HASH is of the names of
all parts together, because a release that several clients make is one thing. Beside it lies what a
killed run needs to go on.
"""

import hashlib
import itertools
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pipelines.errors import UserError
from pipelines.privacy.ledger import Ledger, LedgerError, Release


def folder_of(ledgers: dict[str, Ledger], releases: dict[str, Release]) -> Path:
    """Returns the folder of a release's result, by the fingerprints of its parts."""
    names = {client: release.fingerprint for client, release in releases.items()}
    return _folder(ledgers, names)


def folder_by_facts(ledgers: dict[str, Ledger], releases: dict[str, Release]) -> Path:
    """Returns the folder of a result that is known by its facts, whatever its parts cost."""
    names = {client: release.facts for client, release in releases.items()}
    return _folder(ledgers, names)


def former_folder(ledgers: dict[str, Ledger], releases: dict[str, Release]) -> Path:
    """Returns the folder that earlier versions of this code gave a release's result."""
    names = {client: release.former_fingerprint for client, release in releases.items()}
    return _folder(ledgers, names)


def collected(ledgers: dict[str, Ledger], releases: dict[str, Release]) -> Path | None:
    """Returns the folder of a result that other processes' parts came to, or None."""
    for find in (folder_by_facts, former_folder):
        folder = find(ledgers, releases)
        if folder.exists():
            return folder
    return None


def unfinished(ledgers: dict[str, Ledger], releases: dict[str, Release]) -> Path:
    """Returns the folder that holds what a killed run needs to go on with this very release.

    It is private, lies beside the result, and is removed once the release is closed. It does not
    exist before the making of the release creates it.
    """
    return _beside(folder_of(ledgers, releases))


def copy_files(store: Path, folder: Path) -> None:
    """Copies the stored files into an output folder that is being filled."""
    shutil.copytree(store, folder, dirs_exist_ok=True)


def lost(folder: Path) -> list[str]:
    """Returns the fingerprints of the closed releases of which no result is stored.

    Args:
        folder: The folder of a data set's ledgers.

    Raises:
        UserError: A ledger was tampered with.
    """
    fingerprints = []
    for parts, store in _closed(folder):
        if not store.exists():
            fingerprints += parts
    return fingerprints


def leftovers(folder: Path) -> list[Path]:
    """Returns the folders that closed releases no longer need: a run died as it removed them.

    Args:
        folder: The folder of a data set's ledgers.

    Raises:
        UserError: A ledger was tampered with.
    """
    unneeded = []
    for _, store in _closed(folder):
        if _beside(store).exists():
            unneeded.append(_beside(store))
    return unneeded


def unknown(folder: Path) -> list[Path]:
    """Returns the stored results that belong to no entry of the ledgers.

    They are what came of rounds over a network. Or the ledgers lack releases that were made.

    Args:
        folder: The folder of a data set's ledgers.

    Raises:
        UserError: A ledger was tampered with.
    """
    known = {_place(folder, parts) for parts in _parts(_entries(folder))}
    stored = (folder / "releases").glob("[!.]*")
    return sorted(path for path in stored if path not in known)


def _closed(folder: Path) -> Iterator[tuple[list[str], Path]]:
    """Yields the fingerprints of the parts, and the result's folder, of each closed release.

    A release is closed once all its parts are.
    """
    entries = _entries(folder)
    closed = set()
    for entry in itertools.chain.from_iterable(entries.values()):
        if entry["event"] == "close":
            closed.add(entry["fingerprint"])
    for parts in _parts(entries):
        if closed.issuperset(parts):
            yield parts, _place(folder, parts)


def _entries(folder: Path) -> dict[str, list[dict]]:
    """Returns the lines of each client's ledger."""
    entries = {}
    for path in sorted(folder.glob("*.jsonl")):
        try:
            entries[path.stem] = Ledger(path, delta=1e-5).entries()
        except LedgerError as error:
            raise UserError(str(error)) from None
    return entries


def _parts(entries: dict[str, list[dict]]) -> list[list[str]]:
    """Returns the fingerprints of the parts of each release, in the order of the clients' names.

    The parameters of a joint release name the client. Its parts have the same place in every
    ledger, among those of the same mechanism, data and seed.

    Args:
        entries: The lines of each client's ledger.
    """
    fingerprints: dict[tuple, list[str]] = {}
    for client, lines in sorted(entries.items()):
        places: Counter = Counter()
        for entry in lines:
            if entry["event"] != "open":
                continue
            kind = (client,)
            if "client" in entry["parameters"]:
                seed = entry["parameters"].get("seed")
                kind = (entry["mechanism"], entry["version"], entry["data"], seed)
                # of a joint sum these are the same for all
                if "colluding" in entry["parameters"]:
                    chosen = ("colluding", "epsilon", "delta")
                    kind += tuple(entry["parameters"][name] for name in chosen)
            fingerprints.setdefault((*kind, places[kind]), []).append(entry["fingerprint"])
            places[kind] += 1
    return list(fingerprints.values())


def _folder(ledgers: dict[str, Ledger], names: dict[str, str]) -> Path:
    """Returns the folder of a result, by the name of each client's part."""
    folder = next(iter(ledgers.values())).path.parent
    return _place(folder, [names[client] for client in sorted(names)])


def _place(folder: Path, parts: list[str]) -> Path:
    """Returns ledgers/DATASET/releases/HASH, where HASH is of the names of all parts."""
    return folder / "releases" / hashlib.sha256("".join(parts).encode()).hexdigest()[:24]


def _beside(store: Path) -> Path:
    """Returns the folder beside a result that holds what a killed run needs."""
    return store.with_name(f".{store.name}.unfinished")
