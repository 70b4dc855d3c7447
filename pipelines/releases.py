"""Makes a release once: its ledger's entries, the making, and the stored result.

A release is an entry in a client's ledger. It is entered before it is made and closed afterwards.
One that was made before is taken from the store (`release_store`), and costs nothing.

Ledgers lie outside DVC's outputs, because DVC deletes and restores those. They are
`ledgers/DATASET/CLIENT.jsonl`, with the results beside them. Set FEDLENS_LEDGERS to their place
where a run has a folder of its own (`dvc exp run --temp`, `--queue`).

>>> statement_of_toy = {"guarantee": "formal"}
>>> cost = {"kind": "gaussian", "mu": 0.5}
>>> release = Release("toy", 1, {"seed": 0}, "hash of the records", cost, statement_of_toy)
>>> ledgers = {"c0": Ledger(Path("ledgers/toy/c0.jsonl"), delta=1e-5)}
>>> def make(folder):
...     print("  it is made")
...     (folder / "result.txt").write_text("noisy sums")
>>> store = make_once(ledgers, {"c0": release}, make)
  c0: with this, all its releases together come to epsilon 1.994 at delta 1e-05
  it is made
>>> make_once(ledgers, {"c0": release}, make) == store
  c0: with this, all its releases together come to epsilon 1.994 at delta 1e-05
  made before: taken from the ledger's store; nothing is spent
True
"""

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from pipelines import paths, release_store, release_totals
from pipelines.config import Params
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.salting import salt
from pipelines.errors import UserError
from pipelines.files import new_folder, read_json, write_json
from pipelines.privacy.ledger import Ledger, LedgerError, Release, durable

# of a run over a network, in its store
STATEMENTS = "statements.json"


def ledger_of(params: Params, dataset: str, client: str) -> Ledger:
    """Returns the ledger of one client's records of one data set.

    Args:
        params: The parameters. Its cap is `clients.NAME.lifetime_epsilon`.
        dataset: The data set's name.
        client: The client's name.
    """
    _, delta = params.budget(client)
    settings = params.clients[client]
    return Ledger(
        paths.ledgers() / dataset / f"{client}.jsonl",
        delta=delta,
        lifetime_epsilon=settings.lifetime_epsilon,
        lifetime_delta=settings.lifetime_delta,
    )


def statement(params: Params, dataset: str, client: str, fingerprint: str) -> dict:
    """Returns the privacy statement that cards print, as the ledger holds it.

    Args:
        params: The parameters.
        dataset: The data set's name.
        client: The client's name.
        fingerprint: The release's name in the ledger (`Release.fingerprint`).

    Raises:
        UserError: The ledger knows no such closed release, or was tampered with.
    """
    with as_user_error():
        return ledger_of(params, dataset, client).statement(fingerprint)


def summary(params: Params, dataset: str, client: str) -> dict:
    """Returns `Ledger.summary()` of one client.

    Args:
        params: The parameters.
        dataset: The data set's name.
        client: The client's name.

    Raises:
        UserError: The ledger was tampered with.
    """
    with as_user_error():
        return ledger_of(params, dataset, client).summary()


def closed_by_public_name(params: Params, dataset: str, client: str) -> dict[str, dict]:
    """Returns the closing entry of every release that the client has made, by its public name.

    A card names its release by a keyed hash of its place in the ledger. The fingerprint would not
    do: it holds a hash of the records, so whoever guessed all records could confirm the guess. A
    place says nothing of any record. The key is the client's secret, and hides how many releases
    came before.

    Args:
        params: The parameters.
        dataset: The data set's name.
        client: The client's name.

    Raises:
        UserError: The ledger was tampered with.
    """
    with as_user_error():
        entries = ledger_of(params, dataset, client).closed()
    by_name = {}
    for place, entry in enumerate(entries):
        name = salt(dataset, client, f"release {place}")[:16].hex()
        by_name[name] = entry
    return by_name


def public_name(params: Params, dataset: str, client: str, fingerprint: str) -> str:
    """Returns the name by which a card calls a closed release.

    Args:
        params: The parameters.
        dataset: The data set's name.
        client: The client's name.
        fingerprint: The release's name in the ledger.

    Raises:
        UserError: The ledger knows no such closed release, or was tampered with.
    """
    for name, entry in closed_by_public_name(params, dataset, client).items():
        if entry["fingerprint"] == fingerprint:
            return name
    raise UserError(
        f"The ledger of {client} knows no closed release {fingerprint[:12]}. Run this where that "
        "ledger lies."
    )


def digest(data: Images) -> str:
    """Returns the SHA-256 of the records, which names them in the ledger. It is private, too."""
    digest_of_arrays = hashlib.sha256()
    for array in (data.images, data.labels, data.ids):
        digest_of_arrays.update(array.tobytes())
    return digest_of_arrays.hexdigest()


def digest_of_all(facts: list[str]) -> str:
    """Returns the hash by which a ledger names the facts of a release of several clients."""
    return hashlib.sha256("".join(facts).encode()).hexdigest()


def match_recorded(ledgers: dict[str, Ledger], releases: dict[str, Release]) -> dict[str, Release]:
    """Returns each client's release, under the name that its ledger has if it was entered before.

    Raises:
        UserError: A ledger was tampered with.
    """
    known = {}
    with as_user_error():
        for client, release in releases.items():
            known[client] = ledgers[client].recognised(release)
    # a joint release is one thing: what only some ledgers know was another
    return known if all(release.recorded for release in known.values()) else releases


def make_once(
    ledgers: dict[str, Ledger], releases: dict[str, Release], make: Callable[[Path], None]
) -> Path:
    """Makes a release of one client, or of several together, unless it was made before.

    Every client's ledger enters its part before `make` fills the folder, and closes it after. A run
    that died in between finds the entry open. If the folder was complete it is used; otherwise it
    is made anew. The release is charged once either way.

    Args:
        ledgers: The ledger of each client.
        releases: Each client's part. The clients are the same as in `ledgers`.
        make: Fills an empty folder with the result.

    Returns:
        The folder in the store that holds the result.

    Raises:
        UserError: A ledger refuses (tampered with, or above a lifetime cap), the result of a
            release that was made is gone, or no result could be moved to the ledgers' folder.
            Nothing was spent then, if the text names no ledger that is charged.
    """
    releases = match_recorded(ledgers, releases)
    store = release_store.folder_of(ledgers, releases)
    with as_user_error(), contextlib.ExitStack() as locks:
        # 1. one process makes it
        for client in sorted(releases):
            locks.enter_context(ledgers[client].making())
        release_totals.announce(ledgers, releases)
        # 2. every ledger checks its part before the first one is charged
        for client in sorted(releases):
            ledgers[client].check(releases[client])
        was_made = any(
            ledgers[client].has_made(releases[client].fingerprint) for client in releases
        )
        _check_store(store, was_made)
        # 3. every ledger enters its part before it is made
        _enter_all(ledgers, releases)
        # 4. the result is on the disk, whole, before its entry is closed
        if store.exists():
            print("  made before: taken from the ledger's store; nothing is spent")
        else:
            with new_folder(store) as folder:
                make(folder)
                durable.flush_files(folder)
            durable.flush_folder(store.parent)
        for client in sorted(releases):
            ledgers[client].close(releases[client].fingerprint)
        shutil.rmtree(release_store.unfinished(ledgers, releases), ignore_errors=True)
    return store


def _enter_all(ledgers: dict[str, Ledger], releases: dict[str, Release]) -> None:
    """Enters a release in every client's ledger.

    Raises:
        LedgerError: One refuses. Another process may have entered something there since all were
            asked. Then the text names those that are charged.
    """
    charged = []
    for client in sorted(releases):
        try:
            ledgers[client].open(releases[client])
        except LedgerError as error:
            if not charged:
                raise
            raise LedgerError(
                f"{error} That holds for {client}, whose ledger has changed since all were asked. "
                f"Charged already: {', '.join(charged)}. The same release goes on there for no "
                "further charge."
            ) from error
        charged.append(client)


def enter_as_made(ledger: Ledger, release: Release) -> None:
    """Enters a release that leaves in parts as made, before its first part leaves.

    Nothing of such a release can ever be taken back.

    Raises:
        UserError: The ledger refuses. Nothing was spent then.
    """
    with as_user_error():
        ledger.open(release)
        ledger.close(release.fingerprint)


def collect_once(
    ledgers: dict[str, Ledger], releases: dict[str, Release], make: Callable[[Path], None]
) -> tuple[Path, dict[str, dict]]:
    """Stores the result of a joint release whose parts other processes make and enter.

    The store is filled now unless it was before. What is stored has left already, and costs nothing
    to read again. It holds the statements, too, because a later accountant would state another
    price.

    Args:
        ledgers: The ledger of each client.
        releases: Each client's part, as this process would plan it.
        make: Fills an empty folder with the result.

    Returns:
        The folder in the store, and each client's statement with its cost.
    """
    statements = {}
    for client, release in releases.items():
        statements[client] = {**release.statement, "cost": release.cost}
    collected = release_store.collected(ledgers, releases)
    if collected:
        print("  made before: taken from the store; nothing is spent")
        # a former name holds all parameters: today's statement is that of then
        stored = collected / STATEMENTS
        return collected, read_json(stored) if stored.exists() else statements
    store = release_store.folder_by_facts(ledgers, releases)
    with new_folder(store) as folder:
        make(folder)
        write_json(folder / STATEMENTS, statements)
    return store, read_json(store / STATEMENTS)


def _check_store(store: Path, was_made: bool) -> None:
    """Refuses a release whose result is lost, or could not be stored.

    Raises:
        LedgerError: The release was made, and its result is gone; or a result cannot be moved to
            the store as a whole.
    """
    if was_made and not store.exists():
        raise LedgerError(
            f"This release was made before, but its stored result {store} is gone. Bring it back, "
            "or change the seed: that is a new release, and is charged."
        )
    check_place(store)


def check_place(store: Path) -> None:
    """Refuses a place in the store to which no result of this checkout can be moved as a whole.

    Raises:
        LedgerError: The ledgers lie on another file system.
    """
    near = next(place for place in store.parents if place.exists())
    if near.stat().st_dev != Path().stat().st_dev:
        raise LedgerError(
            f"The ledgers' folder {near} lies on another file system than this checkout: no result "
            f"can be moved there as a whole. Name one on the same file system ({paths.LEDGERS})."
        )


@contextlib.contextmanager
def as_user_error() -> Iterator[None]:
    """Turns a ledger's refusal into an error that the user reads as one sentence."""
    try:
        yield
    except LedgerError as error:
        raise UserError(str(error)) from None
