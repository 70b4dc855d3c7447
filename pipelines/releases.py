"""Releases made once: the ledger's entry, the making, and the private store of what was made.

Ledgers lie outside DVC's outputs, for DVC deletes and restores those: `ledgers/DATASET/CLIENT.jsonl`, with the results
beside it. Set FEDLENS_LEDGERS to their place where a run has a folder of its own (`dvc exp run --temp`, `--queue`).
"""

import contextlib
import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from pipelines import paths
from pipelines.config import Params
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.salting import salt
from pipelines.errors import UserError
from pipelines.files import new_folder, read_json, write_json
from pipelines.privacy.ledger import Ledger, LedgerError, Release, durable

STATEMENTS = "statements.json"  # of a run over a network, in its store


def ledger_of(params: Params, dataset: str, client: str) -> Ledger:
    """The ledger of one client's records of one data set, with its cap from `clients.NAME.lifetime_epsilon`."""
    _, delta = params.budget(client)
    own = params.clients[client]
    return Ledger(
        paths.ledgers() / dataset / f"{client}.jsonl",
        delta=delta,
        lifetime_epsilon=own.lifetime_epsilon,
        lifetime_delta=own.lifetime_delta,
    )


def statement(params: Params, dataset: str, client: str, fingerprint: str) -> dict:
    """What cards print: the privacy statement as the ledger holds it.

    Raises:
        UserError: the ledger knows no such closed release, or was tampered with.
    """
    with _told():
        return ledger_of(params, dataset, client).statement(fingerprint)


def summary(params: Params, dataset: str, client: str) -> dict:
    """Ledger.summary() of one client.

    Raises:
        UserError: the ledger was tampered with.
    """
    with _told():
        return ledger_of(params, dataset, client).summary()


def made(params: Params, dataset: str, client: str) -> dict[str, dict]:
    """{public name: closing entry} of all releases that the client's ledger has as made.

    A card names its release by a keyed hash of its place in the ledger. Not of its fingerprint: that holds a hash of
    the records, by which whoever guessed them all could confirm the guess. A place says nothing of any record, and the
    key, the client's secret, keeps how many releases came before.

    Raises:
        UserError: the ledger was tampered with.
    """
    with _told():
        closed = ledger_of(params, dataset, client).closed()
    return {
        salt(dataset, client, f"release {place}")[:16].hex(): entry
        for place, entry in enumerate(closed)
    }


def public_name(params: Params, dataset: str, client: str, fingerprint: str) -> str:
    """What the card calls a closed release."""
    entries = made(params, dataset, client).items()
    return next(name for name, entry in entries if entry["fingerprint"] == fingerprint)


def digest(data: Images) -> str:
    """sha256 of the records: the ledger's name for them. Private, like the ledger."""
    return hashlib.sha256(
        b"".join(array.tobytes() for array in (data.images, data.labels, data.ids))
    ).hexdigest()


def recognised(ledgers: dict[str, Ledger], releases: dict[str, Release]) -> dict[str, Release]:
    """Returns {client: its release}, under the name that its ledger has for it where it was entered before.

    Raises:
        UserError: a ledger was tampered with.
    """
    with _told():
        known = {
            client: ledgers[client].recognised(release) for client, release in releases.items()
        }
    # a joint release is one thing: what only some ledgers know was another
    return known if all(release.recorded for release in known.values()) else releases


def made_once(
    ledgers: dict[str, Ledger], releases: dict[str, Release], make: Callable[[Path], None]
) -> Path:
    """The stored folder of a release that one or several clients make together, made now unless it was before.

    Every client's ledger enters its part before `make` fills the folder and closes it after. A run that died in between
    finds the entry open: if the folder was complete it is used, otherwise it is made anew, and charged once either way.

    Raises:
        UserError: a ledger refuses (tampered with, or above a lifetime cap), the result of a release that was made is
            gone, or no result could be moved to the ledgers' folder. Nothing was spent then.
    """
    releases = recognised(ledgers, releases)
    store = _store(ledgers, _names(releases))
    with _told(), contextlib.ExitStack() as locks:
        for client in sorted(releases):
            locks.enter_context(ledgers[client].making())
            _announce(client, ledgers[client], releases[client])
        for client in sorted(releases):  # all of them, before the first is charged
            ledgers[client].check(releases[client])
        _check_store(
            store,
            any(ledgers[client].has_made(releases[client].fingerprint) for client in releases),
        )
        for client in sorted(releases):
            ledgers[client].open(releases[client])
        if store.exists():
            print("  made before: taken from the ledger's store; nothing is spent")
        else:
            with new_folder(store) as folder:
                make(folder)
                durable.flush_files(folder)
            durable.flush_folder(store.parent)
        for client in sorted(releases):
            ledgers[client].close(releases[client].fingerprint)
        shutil.rmtree(unfinished(ledgers, releases), ignore_errors=True)
    return store


def enter(ledger: Ledger, release: Release) -> None:
    """A release that leaves in parts, so that nothing of it is ever taken back: as made, before its first part leaves.

    Raises:
        UserError: the ledger refuses. Nothing was spent then.
    """
    with _told():
        ledger.open(release)
        ledger.close(release.fingerprint)


def _check_store(store: Path, made: bool) -> None:
    """
    Raises:
        LedgerError: the release was made, and its result is gone; or a result cannot be moved there as a whole.
    """
    if made and not store.exists():
        raise LedgerError(
            f"This release was made before, but its stored result {store} is gone. Bring it back, or change the seed: "
            "that is a new release, and is charged."
        )
    near = next(place for place in store.parents if place.exists())
    if near.stat().st_dev != Path().stat().st_dev:
        raise LedgerError(
            f"The ledgers' folder {near} lies on another file system than this checkout: no result can be moved there "
            f"as a whole. Name one on the same file system ({paths.LEDGERS})."
        )


def kept_once(
    ledgers: dict[str, Ledger], releases: dict[str, Release], make: Callable[[Path], None]
) -> tuple[Path, dict[str, dict]]:
    """Returns (store, {client: its statement with its cost}) of a joint release whose parts other processes make.

    Those processes enter their parts, too. The store is filled now unless it was before. What is stored has left, and
    costs nothing to read again. It keeps the statements, for a later accountant would state another price.
    """
    store = _store(ledgers, {client: release.facts for client, release in releases.items()})
    former = _store(
        ledgers, {client: release.former_fingerprint for client, release in releases.items()}
    )
    today = {
        client: {**release.statement, "cost": release.cost} for client, release in releases.items()
    }
    for made in (store, former):
        if made.exists():
            print("  made before: taken from the store; nothing is spent")
            # a former name holds all parameters: today's statement is that of then
            return made, read_json(made / STATEMENTS) if (made / STATEMENTS).exists() else today
    with new_folder(store) as folder:
        make(folder)
        write_json(folder / STATEMENTS, today)
    return store, read_json(store / STATEMENTS)


def unfinished(ledgers: dict[str, Ledger], releases: dict[str, Release]) -> Path:
    """Where `make` may keep what a killed run needs to go on with this very release: private, beside the store, and
    removed once the release is closed. It does not exist before `make` creates it."""
    return _beside(_store(ledgers, _names(releases)))


def unstored(folder: Path) -> list[str]:
    """Fingerprints of closed releases of the ledgers in `folder` whose stored result is not there."""
    return [part for parts, store in _closed(folder) if not store.exists() for part in parts]


def outlived(folder: Path) -> list[Path]:
    """Returns folders that closed releases no longer need: a run was killed as it removed them."""
    return [left for _, store in _closed(folder) if (left := _beside(store)).exists()]


def copy(store: Path, folder: Path) -> None:
    """The stored files into an output folder that is being filled."""
    shutil.copytree(store, folder, dirs_exist_ok=True)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """A ledger's refusal as the user's error."""
    try:
        yield
    except LedgerError as error:
        raise UserError(str(error)) from None


def _announce(client: str, ledger: Ledger, release: Release) -> None:
    """Prints what this release brings the client's total to, before it is spent: at its cap's delta, if it has one."""
    capped = ledger.lifetime_epsilon is not None
    cap, delta = (
        (f" of a lifetime {ledger.lifetime_epsilon:g}", ledger.cap_delta())
        if capped
        else ("", ledger.delta)
    )
    total = ledger.told([] if ledger.knows(release.fingerprint) else [release.cost], delta=delta)
    print(
        f"  {client}: with this, all its releases together come to epsilon {total}{cap} at delta {delta:g}"
    )


def _names(releases: dict[str, Release]) -> dict[str, str]:
    return {client: release.fingerprint for client, release in releases.items()}


def _closed(folder: Path) -> Iterator[tuple[list[str], Path]]:
    """(fingerprints of its parts, store) of every release in `folder` of which all parts are closed."""
    with _told():
        ledgers = {
            path.stem: Ledger(path, delta=1e-5).entries() for path in sorted(folder.glob("*.jsonl"))
        }
    closed = {
        entry["fingerprint"]
        for entries in ledgers.values()
        for entry in entries
        if entry["event"] == "close"
    }
    for parts in _parts(ledgers):
        if closed.issuperset(parts):
            yield parts, _place(folder, parts)


def _parts(ledgers: dict[str, list[dict]]) -> list[list[str]]:
    """Fingerprints of each release, by client: a joint one (its parameters name the client) has its parts at the same
    place in every ledger, among those of its mechanism, data and seed."""
    found: dict[tuple, list[str]] = {}
    for client, entries in sorted(ledgers.items()):
        before: Counter = Counter()
        for entry in entries:
            if entry["event"] == "open":
                seed = entry["parameters"].get("seed")
                joint = "client" in entry["parameters"]
                kind = (
                    (entry["mechanism"], entry["version"], entry["data"], seed)
                    if joint
                    else (client,)
                )
                found.setdefault((*kind, before[kind]), []).append(entry["fingerprint"])
                before[kind] += 1
    return list(found.values())


def _store(ledgers: dict[str, Ledger], names: dict[str, str]) -> Path:
    """Returns the store of a release that one or several clients make together, by the names of its parts."""
    folder = next(iter(ledgers.values())).path.parent
    return _place(folder, [names[client] for client in sorted(names)])


def _place(folder: Path, parts: list[str]) -> Path:
    """ledgers/DATASET/releases/HASH: the hash of all parts, for a joint release is one thing."""
    return folder / "releases" / hashlib.sha256("".join(parts).encode()).hexdigest()[:24]


def _beside(store: Path) -> Path:
    return store.with_name(f".{store.name}.unfinished")
