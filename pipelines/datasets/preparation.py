"""Reads a data set by the parameters, and sets apart what no client gets.

The stage `prepare` writes what comes of it. Nothing here writes a file, but for a published archive
that is absent and downloaded (`torchvision_sets`).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines import seeds
from pipelines.config import Params
from pipelines.config.values import mistake
from pipelines.datasets import partitions, sources
from pipelines.datasets.labelled_images import Images


@dataclass(frozen=True)
class Prepared:
    """Holds a data set as read, before it is dealt.

    Attributes:
        pool: The records of all clients.
        test: The global test set.
        public: Images that are declared public, which may be none.
        names: The class names by label, or None.
        read: All records that were read, without an official test set.
    """

    pool: Images
    test: Images
    public: Images
    names: list[str] | None
    read: Images


def prepared(params: Params, dataset: str) -> Prepared:
    """Reads a data set, and sets its test set and its public images apart.

    Args:
        params: The parameters.
        dataset: The data set's name.

    Raises:
        UserError: The images cannot be read, are not as the profile declares, or too few.
    """
    profile = params.profiles[dataset]
    root = Path(params.prepare.root)
    source = {"name": profile.source, "classes": profile.classes, "root": root}
    skip = params.prepare.on_unreadable
    read, test = sources.read(dataset, shape=profile.shape, on_unreadable=skip, **source)
    names = sources.class_names(dataset, declared=profile.class_names, **source)
    pool = read
    if test is None:
        rng = np.random.default_rng(seeds.derive(params.seed, "prepare", dataset))
        test, pool = _split(pool, params.prepare.test_fraction, rng)
        if not len(test):
            rule = f"large enough to leave an image of {dataset} in the global test set"
            raise mistake("prepare.test_fraction", params.prepare.test_fraction, rule)
    rng = np.random.default_rng(seeds.derive(params.seed, "public", dataset))
    public, pool = _split(pool, params.public_fraction(dataset), rng)
    return Prepared(pool, test, public, names, read)


def _split(pool: Images, fraction: float, rng: np.random.Generator) -> tuple[Images, Images]:
    """Returns a fraction of the pool, stratified by class, and the rest."""
    first, rest = partitions.split(pool.labels, [fraction], rng)
    return pool[first], pool[rest]
