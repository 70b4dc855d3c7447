"""One model on all exported sets: all classes alike, and the task of a server that holds them."""

import numpy as np
import torch
from torch import nn

from pipelines.config.training import Pooled
from pipelines.datasets.labelled_images import Images
from pipelines.federation.core import gathered
from pipelines.federation.core.task import Task

SETTINGS = Pooled(steps=300, batch=30, learning_rate=0.02)


def made(count: int, seed: int, label: int) -> Images:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (count, 2, 2, 1)).astype(np.uint8)
    return Images(pixels, np.full(count, label), np.full(count, -1))


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(4, 2))


def task() -> Task:
    """Returns images that say nothing of their class; nine of ten are of class 0."""
    data = {"a": made(180, 1, 0), "b": made(20, 2, 1)}
    return Task(data, network, None, {"a": 1.0, "b": 2.0}, seed=0)


def test_a_frequent_class_is_not_learned_to_be_more_likely():
    given = task()
    model = network()
    state = gathered.trained_on_all(given, SETTINGS)
    model.load_state_dict({name: torch.as_tensor(array) for name, array in state.items()})
    images = torch.rand(500, 1, 2, 2)
    share = model(images).softmax(1)[:, 0].mean().item()
    assert 0.35 < share < 0.65
    # the control: the classes as they are
    whole = gathered.union(given)
    state = gathered.trained_on(given, whole, SETTINGS, "control")
    model.load_state_dict({name: torch.as_tensor(array) for name, array in state.items()})
    assert model(images).softmax(1)[:, 0].mean().item() > 0.8


def test_a_server_trains_on_the_union_of_all_sets_in_the_order_of_names():
    given = task()
    alone = gathered.at_one_place(given)
    assert list(alone.data) == list(alone.epsilons) == [gathered.SERVER]
    assert alone.data[gathered.SERVER].labels.tolist() == [0] * 180 + [1] * 20
    assert alone.shared is given.data


def test_the_same_seed_gives_the_same_bytes():
    one, again = (gathered.trained_on_all(task(), SETTINGS) for _ in range(2))
    assert all(one[name].tobytes() == again[name].tobytes() for name in one)
