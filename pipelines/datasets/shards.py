"""One client's private records, cut into train, validation and test."""

from dataclasses import dataclass
from pathlib import Path

from pipelines import paths
from pipelines.config.data import Profile
from pipelines.datasets.labelled_images import Images, load
from pipelines.datasets.salting import salt

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Shard:
    train: Images
    validation: Images
    test: Images

    def save(self, folder: Path, *, dataset: str, client: str) -> None:
        folder.mkdir(parents=True)
        for part in PARTS:
            getattr(self, part).save(folder / f"{part}.npz", salt(dataset, client, part))


def read(dataset: str, client: str, part: str, profile: Profile | None = None) -> Images:
    """One part of a client's shard, which must fit `profile` where it is given (`labelled_images.load`)."""
    return load(paths.shards(dataset) / client / f"{part}.npz", profile)


def read_all(dataset: str, clients: list[str], profile: Profile | None = None) -> dict[str, Shard]:
    """Every client's shard; for stages that play all the homes at once."""
    return {
        client: Shard(*(read(dataset, client, part, profile) for part in PARTS))
        for client in sorted(clients)
    }
