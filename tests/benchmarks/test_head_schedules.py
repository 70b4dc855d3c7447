"""Tests how schedules are looked for: on training images alone, each cell once."""

import json

import numpy as np
import pytest

from benchmarks import common, head_schedules
from models.encoders import NORM
from pipelines import config
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import SeededForTests
from pipelines.training import linear_head


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    monkeypatch.setattr(linear_head, "FEATURES", tmp_path / "features")
    monkeypatch.setattr(head_schedules, "CLIENTS", {"scatter": ((60, 8.0),)})
    monkeypatch.setattr(head_schedules, "GRID", {"scatter": ((9, 4.0), (3, 8.0))})
    monkeypatch.setattr(head_schedules, "VALIDATION", 30)


def images(count: int) -> Images:
    """Returns images whose brightness says their class."""
    labels = np.arange(count) % 2
    pixels = np.where(labels[:, None, None, None], 200, 40) * np.ones((count, 8, 8, 1))
    stripes = np.where(np.arange(8) % 2, 50, 0)[None, None, :, None] * labels[:, None, None, None]
    return Images((pixels + stripes).astype(np.uint8), labels, np.arange(count))


@pytest.mark.parametrize("network", ["encoder", "scatter"])
def test_no_cell_is_wanted_twice(monkeypatch, network):
    monkeypatch.undo()
    cells = [json.dumps(cell) for cell in head_schedules.wanted(network)]
    assert len(set(cells)) == len(cells) > 10


@pytest.mark.parametrize("features", head_schedules.FEATURES)
def test_a_cell_has_its_steps_and_an_accuracy_of_images_that_are_held_out(features):
    params = config.load()
    cell, other = head_schedules.wanted("scatter")
    # 60 records have no mean to speak of at a small epsilon
    key = {"dataset": "digits", **cell, "epsilon": 1e4, "features": features, "seed": 0}
    settings = head_schedules.settings_of(params, key)
    assert [(s.steps, s.learning_rate) for s in settings.schedules] == [(9, 4.0)]
    found = head_schedules.accuracy(params, key, images(200))
    assert found == head_schedules.accuracy(params, key, images(200))
    assert found > 0.8
    assert other["steps"] == 3


def test_the_mean_has_the_noise_of_its_share():
    features = np.random.default_rng(0).standard_normal((40, 5000)).astype(np.float32)
    budget = Budget(2.0, 1e-5)
    found = head_schedules.noisy_mean(features, budget, SeededForTests(1))
    noise = (found - features.mean(0)) * len(features)
    expected = NORM / (budget.mu * np.sqrt(head_schedules.CENTRE_SHARE))
    assert noise.std() == pytest.approx(expected, rel=0.05)
