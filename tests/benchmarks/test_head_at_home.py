"""Tests the paired differences of the benchmark of heads at home, and that it resumes."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks import common, head_at_home, personalisation, personalisation_cells
from benchmarks.client_draws import USUAL
from benchmarks.dp_head import on_network
from pipelines.config import load
from pipelines.datasets.labelled_images import Images
from pipelines.federation.home import personal
from pipelines.training import classifier, linear_head, replay

WAY = {
    "regime": USUAL,
    "dataset": "digits",
    "network": "scatter",
    "road": "head",
    "settings": "today",
}


def cell(client: str, own: float, seed: int = 0, labels: str = "8") -> dict:
    return {"labels": labels, "client": client, "seed": seed, "own": own, "global": own / 2}


def other(client: str, own: float, start: str, recipe: str) -> dict:
    way = {"regime": USUAL, "dataset": "digits", "start": start, "recipe": recipe}
    return {**way, **cell(client, own)}


def test_differences_are_paired_by_client_and_absent_without_a_pair():
    others = [
        other("n0", 0.5, "pppfl", "replay"),
        other("n1", 0.9, "pppfl", "plain"),
        other("n0", 0.1, "random", "alone"),
        other("n1", 0.3, "random", "alone"),
    ]
    found = [cell("n0", 0.6), cell("n1", 0.8)]
    line = head_at_home.row({**WAY, "labels": "8"}, found, others)
    assert line["own"] == pytest.approx(0.7)
    assert line["own_less_pppfl"] == pytest.approx(0.1)
    assert line["own_less_local"] == pytest.approx(0.5)
    assert line["global_less_local"] == pytest.approx(0.25)
    assert head_at_home.row({**WAY, "labels": "8"}, found, [])["own_less_pppfl"] is None


def test_the_stored_differences_are_those_to_the_stored_cells():
    others = personalisation_cells.stored(personalisation.NAME)
    rows = common.kept(head_at_home.NAME)
    assert rows and rows == head_at_home.paired_anew(rows, others)


def test_classes_from_kept_inputs_are_those_that_the_model_predicts(monkeypatch, tmp_path):
    monkeypatch.setattr(linear_head, "FEATURES", tmp_path)
    profile = load().profiles["digits"].model_copy(update={"classifier": "scatter"})
    torch.manual_seed(0)
    heads = [classifier.new(profile, 0), classifier.new(profile, 0)]
    for head in heads:
        torch.nn.init.normal_(head[2].weight)
    model = personal.balanced(heads[0], np.arange(10, dtype=np.float32), heads[1])
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (40, 8, 8, 1)).astype(np.uint8)
    data = Images(pixels, np.arange(40) % 10, np.arange(40))
    for elsewhere in (False, True):
        found = head_at_home.predicted(model, linear_head.inputs(data), elsewhere=elsewhere)
        np.testing.assert_array_equal(found, model.predict(data, elsewhere=elsewhere))


def test_a_head_alone_learns_a_clients_own_records_and_reads_others_without_its_shares():
    params = load()
    digits, _ = common.read(params, "digits", Path("raw"))
    own = digits[np.flatnonzero((digits.labels == 3) | (digits.labels == 8))]
    train, test = own[:150], own[150:]
    clients = SimpleNamespace(params=params, dataset="digits", seed=0)
    alone = head_at_home.trained_alone(clients, "c0", train)
    assert np.mean(alone.predict(test) == test.labels) > 0.9
    assert alone.alone is None and not alone.at_home.any()
    np.testing.assert_array_equal(alone.elsewhere, -replay.log_prior(train.labels, 10))


def test_the_network_of_a_head_is_that_of_its_parameters():
    params = on_network(load(), "cifar10", "encoder")
    usual = head_at_home.conditions(load(), "cifar10", USUAL)
    assert head_at_home.network_of(load(), "cifar10") == "scatter"
    assert head_at_home.network_of(params, "cifar10") == "encoder"
    assert head_at_home.conditions(params, "cifar10", USUAL) != usual
    smaller = params.profiles["cifar10"].encoder.model_copy(update={"side": 64})
    profile = params.profiles["cifar10"].model_copy(update={"encoder": smaller})
    other = params.model_copy(update={"profiles": {**params.profiles, "cifar10": profile}})
    changed = head_at_home.conditions(other, "cifar10", USUAL)
    assert changed != head_at_home.conditions(params, "cifar10", USUAL)


def test_draws_are_kept_side_by_side_and_measured_once(monkeypatch, tmp_path):
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    everything = [cell("n0", 0.5, 0, labels) for labels in head_at_home.LABELS]
    assert not common.has_draw(head_at_home.NAME, WAY, 0)
    head_at_home.add(WAY, everything, [])
    head_at_home.add(WAY, [{**each, "seed": 1, "own": 0.7} for each in everything], [])
    assert all(common.has_draw(head_at_home.NAME, WAY, seed) for seed in (0, 1))
    assert not common.has_draw(head_at_home.NAME, {**WAY, "road": "both"}, 0)
    rows = common.kept(head_at_home.NAME)
    assert [row["labels"] for row in rows] == list(head_at_home.LABELS)
    assert all(row["own"] == pytest.approx(0.6) and row["seeds"] == 2 for row in rows)
    head_at_home.add({**WAY, "settings": "other"}, everything, [])
    assert all(row["seeds"] == 1 for row in common.kept(head_at_home.NAME))


def test_images_of_a_taught_pool_have_the_teachers_probabilities():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (12, 8, 8, 1)).astype(np.uint8)
    teacher = classifier.new(load().profiles["digits"], 0)
    pool = head_at_home.Taught(Images(pixels, np.arange(12) % 10, np.arange(12)), None, teacher)
    images, probabilities = pool.draw(5, torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(probabilities, teacher(images).softmax(1))
    assert probabilities.shape == (5, 10)
