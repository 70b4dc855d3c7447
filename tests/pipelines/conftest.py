"""Makes small, explicit inputs that the tests of pipelines/ share.

Nothing here follows params.yaml.
"""

import os

# This comes before torch is imported. Small networks are 20 times slower with more threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from blocks import DATALENS, PARTITION

from pipelines.config.data import Partition
from pipelines.config.generators import Datalens, DpMoments
from pipelines.datasets.labelled_images import Images
from pipelines.synthesis.base import Space


@pytest.fixture
def partition_settings():
    """Returns a factory of Partition blocks."""
    return lambda **changes: Partition.model_validate({**PARTITION, **changes})


@pytest.fixture
def moments_settings():
    """Returns a factory of DpMoments blocks."""
    base = {
        "centre": 0.3,
        "cutoff": 4,
        "clip": 2.0,
        "count_weight": 0.5,
        "residual_clip": 1.5,
        "first_share": 0.6,
        "inflation": 1.0,
        "contrast": 1.0,
        "low_epsilon": None,
    }
    return lambda **changes: DpMoments.model_validate({**base, **changes})


@pytest.fixture
def datalens_settings():
    """Returns a factory of Datalens blocks."""
    return lambda **changes: Datalens.model_validate({**DATALENS, **changes})


@pytest.fixture
def small_space():
    return Space(height=6, width=5, channels=1, classes=3)


@pytest.fixture
def records():
    """Returns a factory of random labelled images in a space."""

    def make(count: int, space: Space, seed: int = 0, labels=None) -> Images:
        rng = np.random.default_rng(seed)
        images = rng.integers(0, 256, (count, *space.shape)).astype(np.uint8)
        labels = rng.integers(0, space.classes, count) if labels is None else np.asarray(labels)
        return Images(images, labels.astype(np.int64), np.arange(count, dtype=np.int64))

    return make


class NoiseSpy:
    """Draws zero noise and records its arguments."""

    guarantee = "none"
    source = "spy"

    def __init__(self):
        self.calls = []

    def discrete_gaussian(self, shape, sigma):
        self.calls.append((tuple(shape), sigma))
        return np.zeros(shape, np.int64)


@pytest.fixture
def noise_spy():
    return NoiseSpy()
