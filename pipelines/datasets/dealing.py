"""Deals the records of a data set to the clients, by the parameters.

The stage `partition` writes what comes of it.
"""

import numpy as np

from pipelines import seeds
from pipelines.config import Params
from pipelines.datasets import partitions
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard


def dealt(params: Params, dataset: str, pool: Images) -> dict[str, Shard]:
    """Deals the pool to the clients, and returns {client: its shard}.

    Args:
        params: The parameters.
        dataset: The data set's name.
        pool: The records of all clients.

    Raises:
        UserError: As `partitions.cut`.
    """
    rng = np.random.default_rng(seeds.derive(params.seed, "partition", dataset))
    return partitions.cut(pool, params.partition, rng)
