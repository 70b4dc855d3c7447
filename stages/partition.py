"""partition@DATASET: deals the pool to the clients and splits each shard.

The parts are train, validation and test. Its output is private.
"""

import numpy as np

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.datasets import labelled_images, partitions, shards
from pipelines.files import new_folder
from stages.cli import main


def run(params: Params, dataset: str) -> None:
    """Writes a shard per client and prints its sizes."""
    pool = labelled_images.load(paths.prepared(dataset) / "pool.npz")
    rng = np.random.default_rng(seeds.derive(params.seed, "partition", dataset))
    cut = partitions.cut(pool, params.partition, rng)
    with new_folder(paths.shards(dataset)) as folder:
        for client, shard in cut.items():
            shard.save(folder / client, dataset=dataset, client=client)
    for client, shard in cut.items():
        classes = len(np.unique(shard.train.labels))
        sizes = ", ".join(f"{len(getattr(shard, part))} {part}" for part in shards.PARTS)
        print(f"{dataset}/{client}: {sizes}; {classes} classes in train")


if __name__ == "__main__":
    main(run, "dataset")
