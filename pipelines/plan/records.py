"""Reads the records that the next `dvc repro` deals, in memory."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.config import Params
from pipelines.datasets import dealing, preparation, torchvision_sets
from pipelines.datasets.labelled_images import Images

NONE = Images(np.zeros((0, 1, 1, 1), np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True)
class Records:
    """Holds what the releases of one data set read.

    Attributes:
        train: The training part of each client.
        public: The server's public images.
        are_known: False stands for records that nobody has read.
    """

    train: dict[str, Images]
    public: Images
    are_known: bool = True


def nobodys(params: Params) -> Records:
    """Returns records that no ledger knows, for a release of unknown records."""
    return Records(dict.fromkeys(params.clients, NONE), NONE, are_known=False)


def dealt(params: Params, dataset: str) -> Records:
    """Returns what `prepare` and `partition` would write.

    Args:
        params: The parameters.
        dataset: The data set's name. Its images must be at hand.

    Raises:
        UserError: Those stages would refuse the images.
    """
    prepared = preparation.prepared(params, dataset)
    shards = dealing.dealt(params, dataset, prepared.pool)
    return Records({client: shards[client].train for client in params.clients}, prepared.public)


def at_hand(params: Params, dataset: str) -> bool:
    """Returns False if `prepare` would download the images first."""
    source = params.profiles[dataset].source
    if source not in torchvision_sets.CLASSES:
        return True
    return torchvision_sets.at_hand(source, root=Path(params.prepare.root), dataset=dataset)
