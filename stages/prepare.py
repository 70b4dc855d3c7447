"""prepare@DATASET: reads the source and splits off the global test set, before anything else happens."""

import numpy as np

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.datasets import partitions, sources
from pipelines.datasets.secrets import salt, season
from pipelines.files import new_folder
from stages.cli import main


def run(params: Params, dataset: str) -> None:
    profile = params.profiles[dataset]
    data = sources.read(dataset, name=profile.source, classes=profile.classes, shape=profile.shape)
    rng = np.random.default_rng(seeds.derive(params.seed, "prepare", dataset))
    test, pool = partitions.split(data.labels, [params.prepare.test_fraction], rng)
    with new_folder(paths.prepared(dataset)) as folder:
        for part, rows in {"pool": pool, "test": test}.items():
            data[rows].save(folder / f"{part}.npz", salt(dataset, "before-partition", part))
    season(paths.RAW, "raw", "all-data-sets")  # DVC hashes this folder, a dependency, after the stage
    print(f"{dataset}: {len(pool)} records to deal, {len(test)} in the global test set")


if __name__ == "__main__":
    main(run, "dataset")
