"""Tests that records are dealt by the seed and the settings alone."""

import numpy as np
import parameter_files
from project import ROOT

from pipelines import config, releases
from pipelines.datasets import dealing
from pipelines.datasets.labelled_images import Images


def dealt(seed: int) -> list[str]:
    params = config.load(ROOT / parameter_files.PARAMS).model_copy(update={"seed": seed})
    labels = np.arange(1500) % 10
    pool = Images(np.zeros((1500, 8, 8, 1), np.uint8), labels, np.arange(1500))
    shards = dealing.dealt(params, "digits", pool)
    return [releases.digest(shard.train) for shard in shards.values()]


def test_a_seed_deals_the_same_and_another_one_does_not():
    assert dealt(7) == dealt(7)
    assert not set(dealt(7)) & set(dealt(8))
