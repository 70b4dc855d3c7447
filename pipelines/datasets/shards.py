"""One client's private records, cut into train, validation and test."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines import paths
from pipelines.config import Partition
from pipelines.datasets import partitions
from pipelines.datasets.containers import Images, load

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Shard:
    train: Images
    validation: Images
    test: Images

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        for part in PARTS:
            getattr(self, part).save(folder / f"{part}.npz")


def read(dataset: str, client: str, part: str) -> Images:
    return load(paths.shards(dataset) / client / f"{part}.npz")


def read_all(dataset: str, clients: list[str]) -> dict[str, Shard]:
    """Every client's shard; for stages that play all the homes at once."""
    return {client: Shard(*(read(dataset, client, part) for part in PARTS)) for client in sorted(clients)}


def cut(pool: Images, settings: Partition, rng: np.random.Generator) -> dict[str, Shard]:
    """Deals the pool to the clients and splits each shard."""
    fractions = [settings.test_fraction, settings.validation_fraction]
    parts = {}
    for client, own in partitions.deal(pool.labels, settings, rng).items():
        parts[client] = [own[positions] for positions in partitions.split(pool.labels[own], fractions, rng)]
    train = {client: rest for client, (_, _, rest) in parts.items()}
    if settings.small:
        train = partitions.few_labels(train, settings.small.client, settings.small.train_records, rng)
    return {
        client: Shard(pool[train[client]], pool[validation], pool[test])
        for client, (test, validation, _) in parts.items()
    }
