"""train_generator@DATASET-CLIENT-GENERATOR: makes one release of one client's shard.

It stays within that client's budget. A generator that clients fitted together (`joint_release`) is
copied for the client.
"""

from functools import partial
from pathlib import Path

from pipelines import paths, release_store, releases
from pipelines.config import Params
from pipelines.config.generators import JOINT
from pipelines.datasets import shards
from pipelines.datasets.salting import add_salt_file
from pipelines.files import new_folder
from pipelines.synthesis import base, release
from pipelines.synthesis.client_release import ClientRelease
from stages.cli import main


def run(params: Params, dataset: str, client: str, generator: str) -> None:
    """Enters the release in the ledger, makes it once, and writes the fitted generator.

    Args:
        params: The parameters.
        dataset: The data set's name.
        client: The client's name.
        generator: The generator's name.
    """
    fill = partial(_take_joint, params, dataset, client, generator)
    if generator not in JOINT:
        fill = partial(release_store.copy_files, _released(params, dataset, client, generator))
    with new_folder(paths.generator(dataset, client, generator)) as folder:
        fill(folder)
        add_salt_file(folder, dataset, client)


def _take_joint(params: Params, dataset: str, client: str, generator: str, folder: Path) -> None:
    """Writes a client's copy of what it released with others."""
    source = paths.joint(dataset) / generator / client
    fingerprints = release.fingerprints_in(source, client)
    together = release.public_names_in(source)
    if len(fingerprints) > 1:
        for member, fingerprint in fingerprints.items():
            together[member] = releases.public_name(params, dataset, member, fingerprint)
    sealed = release.seal_in(source)
    release.copy_joint(source, folder, fingerprints[client], together, sealed)
    print(f"{dataset}/{client}/{generator}: as joint_release made it")


def _released(params: Params, dataset: str, client: str, generator: str) -> Path:
    """Enters a client's own release in its ledger, makes it once, and returns where it is stored."""
    planned = ClientRelease(params, dataset, client, generator)
    plan = planned.plan
    release.announce(plan, f"{dataset}/{client}/{generator}", len(params.synthesis.generators))
    train = shards.read(dataset, client, "train", params.profiles[dataset])
    entry = planned.entry(train)
    ledgers = {client: releases.ledger_of(params, dataset, client)}
    entries = releases.match_recorded(ledgers, {client: entry})
    where = base.Where(params.device, release_store.unfinished(ledgers, entries))

    def make(folder: Path) -> None:
        state = planned.module.fit(train, plan, planned.source, planned.seed, where)
        release.save(folder, state, plan, entries[client].fingerprint)

    return releases.make_once(ledgers, entries, make)


if __name__ == "__main__":
    main(run, "dataset", "client", "generator")
