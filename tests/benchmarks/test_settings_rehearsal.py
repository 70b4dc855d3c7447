"""Tests the rehearsal of settings: no client has a record of the fold, and stored cells stay."""

import numpy as np
import pytest

from benchmarks import common, joint_sums, settings_rehearsal, synthesis_utility
from benchmarks.settings_rehearsal import CASES, Case
from pipelines import config
from pipelines.datasets.labelled_images import Images
from pipelines.synthesis import dp_moments


@pytest.fixture
def images() -> Images:
    labels = np.arange(1000) % 10
    pixels = np.zeros((1000, 28, 28, 1), np.uint8)
    pixels[:] = (labels * 20 + 20)[:, None, None, None]
    return Images(pixels, labels, np.arange(1000))


@pytest.mark.parametrize("clients", [1, 4])
def test_no_client_shares_a_record_with_the_fold(monkeypatch, images, clients):
    seen = {"clients": []}
    alone = dp_moments.fit
    together = joint_sums.fitted
    scores = settings_rehearsal.scores

    def fit(records, plan, *others):
        seen["clients"] += records.ids.tolist()
        return alone(records, plan, *others)

    def fitted(generator, settings, budget, space, group, parts, seed):
        assert (group.clients, group.colluding) == (4, 2)
        assert space.records == 300
        for part in parts:
            seen["clients"] += part.ids.tolist()
        return together(generator, settings, budget, space, group, parts, seed)

    def scored(model, fold):
        seen["fold"] = fold.ids.tolist()
        return scores(model, fold)

    monkeypatch.setattr(dp_moments, "fit", fit)
    monkeypatch.setattr(joint_sums, "fitted", fitted)
    monkeypatch.setattr(settings_rehearsal, "scores", scored)
    monkeypatch.setattr(synthesis_utility, "IMAGES", 400)
    case = Case("fashion_mnist", 300, clients)
    settings_rehearsal.score(config.load(), case, 10.0, 0, images)
    assert len(seen["fold"]) == 200
    assert len(seen["clients"]) == len(set(seen["clients"])) == 300
    assert not set(seen["clients"]) & set(seen["fold"])


def test_a_cell_is_measured_once_and_anew_when_its_settings_change(monkeypatch, tmp_path):
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    measured = []

    def score(params, case, epsilon, seed, images):
        measured.append((case, seed))
        return 0.5 + seed / 10

    monkeypatch.setattr(settings_rehearsal, "score", score)
    for seed in (0, 2, 0):
        settings_rehearsal.add(config.load(), "CIFAR-10", 1.0, seed, None)
    assert [seed for _, seed in measured] == [0, 2]
    (row,) = common.kept("settings_rehearsal")
    assert (row["accuracy"], row["seeds"], row["records"]) == (0.6, 2, 39_000)
    monkeypatch.setitem(CASES, "CIFAR-10", CASES["CIFAR-10, no mirror"])
    settings_rehearsal.add(config.load(), "CIFAR-10", 1.0, 2, None)
    (row,) = common.kept("settings_rehearsal")
    assert (row["accuracy"], row["seeds"]) == (0.7, 1)


def test_cases_differ_from_the_shipped_settings_in_what_they_name():
    params = config.load()
    shipped = settings_rehearsal.settings_of(params, CASES["CIFAR-10"])
    without = settings_rehearsal.settings_of(params, CASES["CIFAR-10, no mirror"])
    assert shipped.mirror and not without.mirror
    together = settings_rehearsal.settings_of(params, CASES["Fashion-MNIST, together"])
    assert together.low_signal
    assert settings_rehearsal.augmentation_of(params, CASES["CIFAR-10, no augmentation"]) is None
