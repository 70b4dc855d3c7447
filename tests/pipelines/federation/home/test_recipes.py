"""Tests what `replay` starts from: a mean of the weights handed out and of a fresh network's."""

import numpy as np
import pytest
import torch
from torch import nn

from pipelines.config.training import Replay
from pipelines.datasets.labelled_images import Images
from pipelines.federation.home import recipes
from pipelines.training.pool import Pool
from pipelines.training.tensors import state_of

CLASSES = 3


def images(count: int) -> Images:
    rng = np.random.default_rng(count)
    pixels = rng.integers(0, 256, (count, 3, 3, 1)).astype(np.uint8)
    return Images(pixels, np.arange(count) % CLASSES, np.arange(count))


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(9, CLASSES))


def started(kept: float, *, pool: Pool | None, steps: int = 1) -> dict[str, np.ndarray]:
    """Returns the weights after steps that move them by next to nothing."""
    schedule = {"from_labels": 0, "steps": steps, "learning_rate": 1e-12, "synthetic_share": 0.5}
    settings = Replay.model_validate({"schedules": [{**schedule, "kept": kept}]})
    personal, _ = recipes.replayed(
        network(1), images(20), settings, seed=0, build=lambda: network(2), pool=pool
    )
    return state_of(personal.model)


@pytest.mark.parametrize("kept", [0.0, 0.25, 1.0])
def test_the_part_that_is_not_kept_is_a_fresh_network_s(kept):
    handed_out = state_of(network(1))
    fresh = state_of(network(2))
    for name, found in started(kept, pool=Pool(images(30), None)).items():
        expected = kept * handed_out[name] + (1 - kept) * fresh[name]
        assert np.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("how", [{"pool": None}, {"pool": Pool(images(30), None), "steps": 0}])
def test_all_is_kept_where_nothing_teaches_it_anew(how):
    handed_out = state_of(network(1))
    for name, found in started(0.25, **how).items():
        assert np.allclose(found, handed_out[name], atol=1e-6)
