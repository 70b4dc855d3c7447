"""train_generator@DATASET-CLIENT-GENERATOR: makes one release of one client's shard.

It stays within that client's budget.
"""

from pathlib import Path

from pipelines import paths, release_store, releases, seeds
from pipelines.config import Params
from pipelines.datasets import shards
from pipelines.datasets.salting import add_salt_file
from pipelines.files import new_folder
from pipelines.privacy import noise
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.synthesis import base, release
from stages.cli import main


def run(params: Params, dataset: str, client: str, generator: str) -> None:
    """Enters the release in the ledger, makes it once, and writes the fitted generator.

    Args:
        params: The parameters.
        dataset: The data set's name.
        client: The client's name.
        generator: The generator's name.
    """
    module = base.load(generator)
    settings = params.generator(dataset, generator)
    space = release.public_space(params.profiles[dataset])
    plan = module.plan(settings, Budget(*params.budget(client)), space)
    release.announce(plan, f"{dataset}/{client}/{generator}", len(params.synthesis.generators))
    names = ("train_generator", dataset, client, generator)
    source = noise.source(params.privacy.noise, seeds.derive(params.seed, "test noise", *names))
    seed = seeds.derive(params.seed, *names)
    train = shards.read(dataset, client, "train", params.profiles[dataset])
    statement = release.described(plan, source)
    mechanism = (generator, module.VERSION, module.IDENTITY)
    entry = release.entry(*mechanism, plan, statement, data=releases.digest(train), seed=seed)
    ledgers = {client: releases.ledger_of(params, dataset, client)}
    entries = releases.match_recorded(ledgers, {client: entry})
    where = base.Where(params.device, release_store.unfinished(ledgers, entries))

    def make(folder: Path) -> None:
        state = module.fit(train, plan, source, seed, where)
        release.save(folder, state, plan, entries[client].fingerprint)

    store = releases.make_once(ledgers, entries, make)
    with new_folder(paths.generator(dataset, client, generator)) as folder:
        release_store.copy_files(store, folder)
        add_salt_file(folder, dataset, client)


if __name__ == "__main__":
    main(run, "dataset", "client", "generator")
