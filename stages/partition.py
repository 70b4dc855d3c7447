"""partition@DATASET: deals the pool to the clients and splits each shard.

The parts are train, validation and test. Its output is private.
"""

import numpy as np

from pipelines import paths
from pipelines.config import Params
from pipelines.datasets import dealing, labelled_images, owners, raw_files, shards
from pipelines.datasets.shards import Shard
from pipelines.files import new_folder
from stages.cli import main

# More clients than these are not listed one by one.
MANY = 10


def run(params: Params, dataset: str) -> None:
    """Writes a shard per client and prints its sizes."""
    pool = labelled_images.load(paths.prepared(dataset) / "pool.npz", with_owners=True)
    cut = dealing.dealt(params, dataset, pool)
    if params.partition.scheme == "natural":
        _tell_absent_sites(dataset, owners.absent_sites(pool.owners, params.partition))
    with new_folder(paths.shards(dataset)) as folder:
        for client, shard in cut.items():
            shard.save(folder / client, dataset=dataset, client=client)
    print("\n".join(lines(dataset, cut)))


def _tell_absent_sites(dataset: str, sites: list[str]) -> None:
    """Prints the sites of `partition.sites` that own no record here."""
    if sites:
        print(f"{dataset}: no record here is of {raw_files.some(sites)} (partition.sites)")


def lines(dataset: str, cut: dict[str, Shard]) -> list[str]:
    """Returns what is printed: each client's sizes, or of many clients the least and the most.

    Args:
        dataset: The data set's name.
        cut: {client: its records}.
    """
    if len(cut) > MANY:
        by_size = sorted(cut, key=lambda client: len(cut[client].train))
        ends = " to ".join(_sizes(cut[client]) for client in (by_size[0], by_size[-1]))
        return [f"{dataset}: {len(cut)} clients, from {by_size[0]} to {by_size[-1]}: {ends}"]
    return [f"{dataset}/{client}: {_sizes(shard)}" for client, shard in cut.items()]


def _sizes(shard: Shard) -> str:
    parts = ", ".join(f"{len(getattr(shard, part))} {part}" for part in shards.PARTS)
    return f"{parts}; {len(np.unique(shard.train.labels))} classes in train"


if __name__ == "__main__":
    main(run, "dataset")
