"""Keeps a joint release at one client whose partners are on other machines.

The client enters the release in its ledger before it sends anything, and knows no other client's
records. So the ledger names its own records and the roster, with a random word. Each attempt is
charged, because nothing that was sent can be taken back. The result lies in the ledger's store,
where the stage `joint_release` finds it.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from pipelines import release_store, releases
from pipelines.config import Params
from pipelines.datasets import shards
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.files import new_folder, read_json
from pipelines.privacy.ledger import Ledger, Release, durable
from pipelines.synthesis import release
from pipelines.synthesis.joint_release import JointRelease, groups


def of_roster(params: Params, dataset: str, generator: str) -> JointRelease:
    """Returns the one release of the whole roster, by the parameters of one side."""
    (members,) = groups(params)
    return JointRelease(params, dataset, generator, members)


def entry(planned: JointRelease, client: str, records: Images, attempt: str) -> Release:
    """Returns what the client's ledger enters.

    Args:
        planned: The release.
        client: The client.
        records: The training part of its shard.
        attempt: A random word, new for each attempt.
    """
    return planned.entry(client, _data(planned, records, attempt))


def place(planned: JointRelease, client: str, entered: Release) -> Path:
    """Returns where the result of a release is stored, or will be."""
    ledger = releases.ledger_of(planned.params, planned.dataset, client)
    return _store(ledger, client, entered)


def save(
    planned: JointRelease,
    client: str,
    entered: Release,
    state: dict[str, np.ndarray],
    among: dict,
) -> Path:
    """Stores the result of a release beside the client's ledger, and returns the folder.

    Args:
        planned: The release.
        client: The client.
        entered: What its ledger has entered, from `entry`.
        state: The generator's state.
        among: What the client keeps beside it, as of `release.save_joint`.
    """
    store = place(planned, client, entered)
    names = {client: entered.fingerprint}
    with new_folder(store) as folder:
        release.save_joint(folder, state, planned.plan, names, among)
        durable.flush_files(folder)
    durable.flush_folder(store.parent)
    return store


def stored(params: Params, dataset: str, generator: str) -> dict[str, Path]:
    """Returns where each client's last release under these parameters is stored.

    Args:
        params: The parameters of the project, whose clients are on this machine.
        dataset: The data set's name.
        generator: The generator's name.

    Raises:
        UserError: A client has made none of its records, or its ledger was tampered with.
    """
    planned = of_roster(params, dataset, generator)
    stores = {}
    for client in params.clients:
        records = shards.read(dataset, client, "train", params.profiles[dataset])
        store = _last(planned, client, records)
        if not store:
            raise UserError(
                f"{client} has made no {generator} with the others of its roster, under these "
                f"parameters and of its records as they are. `python -m pipelines.joint --dataset "
                f"{dataset} --generator {generator}` makes it, on the submitter's machine "
                "(docs/deployment.md, section 11)."
            )
        stores[client] = store
    return stores


def _last(planned: JointRelease, client: str, records: Images) -> Path | None:
    """Returns where the client's last such release is stored, or None."""
    ledger = releases.ledger_of(planned.params, planned.dataset, client)
    with releases.as_user_error():
        entries = ledger.entries()
    for entered in reversed(entries):
        if entered["event"] != "open" or entered["mechanism"] != planned.generator:
            continue
        known = planned.entry(client, entered["data"])
        if known.is_in(entered):
            store = _store(ledger, client, replace(known, recorded=entered["fingerprint"]))
            if store.exists() and entered["data"] == _data(planned, records, _attempt(store)):
                return store
    return None


def _store(ledger: Ledger, client: str, entered: Release) -> Path:
    return release_store.folder_of({client: ledger}, {client: entered})


def _attempt(store: Path) -> str:
    """Returns the random word of a stored release; empty where all clients made it in one process."""
    return str(read_json(store / "release.json").get("attempt", ""))


def _data(planned: JointRelease, records: Images, attempt: str) -> str:
    """Returns the hash of the client's records, its partners and the attempt, for the ledger."""
    partners = []
    for name, key in sorted(planned.params.federation.roster.items()):
        partners.append(f"{name} {key} ")
    return releases.digest_of_all([*partners, releases.digest(records), attempt])
