"""Reads and writes one client's private records, cut into train, validation and test."""

from dataclasses import dataclass
from pathlib import Path

from pipelines import paths
from pipelines.config.data import Profile
from pipelines.datasets.labelled_images import Images, load
from pipelines.datasets.salting import salt

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Shard:
    """Holds the three parts of a client's records.

    Attributes:
        train: What generators and classifiers learn from.
        validation: What epochs and rounds are chosen by.
        test: What results are measured on.
    """

    train: Images
    validation: Images
    test: Images

    def save(self, folder: Path, *, dataset: str, client: str) -> None:
        """Writes a salted file per part into a new folder.

        Args:
            folder: The folder, which must not exist.
            dataset: The data set's name, for the salt.
            client: The client's name, for the salt.
        """
        folder.mkdir(parents=True)
        for part in PARTS:
            getattr(self, part).save(folder / f"{part}.npz", salt(dataset, client, part))


def read(dataset: str, client: str, part: str, profile: Profile | None = None) -> Images:
    """Reads one part of a client's shard.

    Args:
        dataset: The data set's name.
        client: The client's name.
        part: One of PARTS.
        profile: What the images must fit, or None.

    Raises:
        UserError: As `labelled_images.load`.
    """
    return load(paths.shards(dataset) / client / f"{part}.npz", profile)


def read_all(dataset: str, clients: list[str], profile: Profile | None = None) -> dict[str, Shard]:
    """Reads the shards of several clients, for stages that run all clients in one process.

    Args:
        dataset: The data set's name.
        clients: The clients' names.
        profile: What the images must fit, or None.

    Returns:
        The shards by client, in the order of names.

    Raises:
        UserError: As `labelled_images.load`.
    """
    shards = {}
    for client in sorted(clients):
        shards[client] = Shard(*(read(dataset, client, part, profile) for part in PARTS))
    return shards
