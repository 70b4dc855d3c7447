"""Tests the figures of the medical benchmark, and that cells of seeds are kept side by side."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from benchmarks import common, figures, medical_clients
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard
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


def test_a_cell_says_how_many_images_its_client_has(monkeypatch, model):
    labels = np.arange(30) % 2
    shard = Shard(images(labels[:19]), images(labels[:4]), images(labels[:7]))
    clients = SimpleNamespace(seed=3, shards={"c0": shard}, everyone=images(labels))
    monkeypatch.setattr(medical_clients, "models", lambda clients, road: [("c0", model)])
    (cell,) = medical_clients.measured(clients, "head")
    assert (cell["seed"], cell["records"], cell["own_images"]) == (3, 19, 11)


def test_stored_accuracies_are_of_as_many_own_images_as_the_cells_say():
    for row in common.kept(medical_clients.NAME):
        for cell in row["cells"]:
            right = cell["own"]["accuracy"] * cell["own_images"]
            assert right == pytest.approx(round(right), abs=1e-9)


def test_the_page_counts_the_training_images_of_the_clients_that_federate():
    template = (figures.TEMPLATES / "medical_clients.md.j2").read_text()
    outside_of_braces = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", template)
    assert not re.search(r"\d{3}", outside_of_braces)
    page = " ".join(figures.rendered("results.md.j2").split())
    for dataset in medical_clients.DATASETS:
        alone = figures.row(medical_clients.NAME, dataset=dataset, road="local")
        counts = dict.fromkeys(range(alone.seeds), 0)
        for cell in alone.cells:
            counts[cell["seed"]] += cell["records"]
        fewest = min(counts.values())
        most = max(counts.values())
        assert f"have {fewest:,} to {most:,} training images" in page


def test_the_page_has_the_gain_of_small_hospitals_client_by_client():
    page = figures.rendered("results.md.j2")
    (line,) = [line for line in page.splitlines() if line.startswith("| fewer than 150 |")]
    alone = figures.row(medical_clients.NAME, dataset="pneumonia", road="head_alone")
    head = figures.row(medical_clients.NAME, dataset="pneumonia", road="head", epsilon=10.0)
    gains = []
    for cell in alone.cells:
        for other in head.cells:
            same = (cell["seed"], cell["client"]) == (other["seed"], other["client"])
            if same and cell["records"] < 150:
                gains.append(other["global"]["accuracy"] - cell["global"]["accuracy"])
    count, *_, last = line.strip("| ").split(" | ")[1:]
    assert int(count) == len(gains)
    assert float(last.split(" / ")[1]) == pytest.approx(np.mean(gains), abs=6e-4)
