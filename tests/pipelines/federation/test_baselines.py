import numpy as np
import pytest
import torch
from torch import nn

from pipelines import methods
from pipelines.config.training import Nothing, Pooled
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.federation import baselines
from pipelines.federation.core.task import Task
from pipelines.training.tensors import with_state

POOLED = Pooled(steps=360, batch=10, learning_rate=0.02)


def made(count, seed, labels=None):
    """Returns three classes that differ by their brightness."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count) if labels is None else np.full(count, labels)
    pixels = rng.integers(0, 40, (count, 4, 4, 1)) + labels[:, None, None, None] * 90
    return Images(pixels.astype(np.uint8), labels, np.arange(count))


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))


@pytest.fixture
def task():
    """Returns a task in which a holds all classes, and b and c one each."""
    data = {"a": made(60, 1), "b": made(60, 2, labels=0), "c": made(60, 3, labels=2)}
    return Task(data, network, None, dict.fromkeys("abc", 1.0), seed=0)


def same(one, other):
    return all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("algorithm", methods.AT_HOME)
def test_at_home_all_start_from_the_fresh_model_and_nothing_is_sent(task, algorithm):
    (only,) = baselines.trained(algorithm, task, Nothing()).values()
    assert len(only.models) == 1 and set(only.models[0]) == set("abc")
    assert all(same(model, task.start()) for model in only.models[0].values())
    assert only.cost == {"rounds": 0, "bytes_down": 0, "bytes_up": 0, "seconds": 0.0}


def test_pooled_learns_from_every_set(task):
    (only,) = baselines.trained("pooled", task, POOLED).values()
    model = with_state(network(), only.models[0]["b"])
    assert min(scores(model, data)["accuracy"] for data in task.data.values()) > 0.9
    assert only.cost["bytes_up"] == 3 * 60 * 16  # a byte per pixel
    assert only.cost["bytes_down"] == 3 * 4 * (16 * 16 + 16 + 16 * 3 + 3)


def test_single_starts_each_from_its_own_and_all_from_the_one_best_on_the_others_sets(task):
    found = baselines.trained("single", task, POOLED)
    own, best = found["own_synthetic"].models[0], found["best_single"].models[0]
    assert [f"{name}/g" for name in found] == methods.reported("single", ["g"])
    assert not same(own["a"], own["b"])
    assert (
        scores(with_state(network(), own["b"]), task.data["c"])["accuracy"] < 0.1
    )  # b never saw class 2
    assert all(same(best[client], own["a"]) for client in "abc")
    assert found["own_synthetic"].cost["bytes_up"] == 0 < found["best_single"].cost["bytes_up"]


def test_the_choice_of_the_best_reads_no_client_s_own_set(task, monkeypatch):
    """Each candidate is scored on the sets of the others alone."""
    seen = []
    monkeypatch.setattr(
        baselines, "scores", lambda model, data: seen.append(data) or {"accuracy": 0.0}
    )
    baselines.trained("single", task, POOLED)
    expected = [other for client in "abc" for other in "abc" if other != client]
    assert [id(data) for data in seen] == [id(task.data[client]) for client in expected]


def test_a_single_client_has_no_others_to_be_scored_on(task):
    alone = Task({"a": task.data["a"]}, network, None, {"a": 1.0}, seed=0)
    assert set(baselines.trained("single", alone, POOLED)) == {"own_synthetic", "best_single"}
