"""Tests the figures of the medical benchmark, and that cells of seeds are kept side by side."""

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from benchmarks import common, medical_clients
from pipelines.datasets.labelled_images import Images
from pipelines.federation.home.personal import plain

KEY = {"dataset": "breast", "road": "head", "epsilon": 3.0, "settings": "today"}


def images(labels: np.ndarray) -> Images:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (len(labels), 8, 8, 1)).astype(np.uint8)
    return Images(pixels, labels, np.arange(len(labels)))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return plain(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2)), 2)


def test_the_figures_are_scikit_learns(model):
    data = images((np.arange(60) % 4 == 0).astype(np.int64))
    found = medical_clients.figures(model, data, elsewhere=True)
    probabilities = model.probabilities(data)
    assert found["auc"] == pytest.approx(roc_auc_score(data.labels, probabilities[:, 1]))
    predicted = model.predict(data)
    expected = balanced_accuracy_score(data.labels, predicted)
    assert found["balanced_accuracy"] == pytest.approx(expected)
    assert found["accuracy"] == pytest.approx(np.mean(predicted == data.labels))


def test_images_of_one_class_have_no_area(model):
    found = medical_clients.figures(model, images(np.zeros(5, np.int64)), elsewhere=False)
    assert found["auc"] is None and found["balanced_accuracy"] == found["accuracy"]


def test_seeds_are_kept_side_by_side_and_measured_once(monkeypatch, tmp_path):
    monkeypatch.setattr(common, "RESULTS", tmp_path)

    def cell(seed: int, value: float) -> dict:
        figures = dict.fromkeys(medical_clients.FIGURES, value)
        return {"seed": seed, "client": "c0", "own": {**figures, "auc": None}, "global": figures}

    one_class = cell(0, 0.5)
    two_classes = {**cell(0, 0.7), "own": dict.fromkeys(medical_clients.FIGURES, 0.9)}
    medical_clients.add(KEY, [one_class, two_classes])
    medical_clients.add(KEY, [cell(1, 0.6)])
    (line,) = common.kept(medical_clients.NAME)
    assert (line["own_auc"], line["seeds"]) == (0.9, 2)
    assert line["global_auc"] == pytest.approx(0.6)
    assert common.has_draw(medical_clients.NAME, KEY, 1)
    assert not common.has_draw(medical_clients.NAME, KEY, 2)
    medical_clients.add({**KEY, "settings": "other"}, [two_classes])
    (line,) = common.kept(medical_clients.NAME)
    assert line["seeds"] == 1
