"""Tests the search for settings of the medical sets: it goes on with the best value of each one, and
sees no record of the held-out fold.
"""

import numpy as np
import pytest

from benchmarks import common, medical_moments
from pipelines import config
from pipelines.datasets.labelled_images import Images
from pipelines.synthesis import dp_moments


@pytest.fixture
def records() -> Images:
    labels = np.arange(1200) % 2
    images = np.zeros((1200, 28, 28, 1), np.uint8)
    images[:] = (labels * 150 + 50)[:, None, None, None]
    return Images(images, labels, np.arange(1200))


def test_the_search_keeps_the_best_value_of_each_setting(monkeypatch, records):
    tried = []

    def score(params, dataset, settings, epsilon, seed, records):
        tried.append(settings)
        # the best are 12, 8.0 and 0.3
        return settings.cutoff + settings.clip - abs(settings.first_share - 0.3)

    monkeypatch.setattr(medical_moments, "score", score)
    rows = medical_moments.search(config.load(), "breast", medical_moments.LARGE, 2, records)
    chosen = {row["setting"]: row["value"] for row in rows if row["chosen"]}
    assert (chosen["cutoff"], chosen["clip"], chosen["first_share"]) == (12, 8.0, 0.3)
    assert list(chosen) == list(medical_moments.SEARCH[medical_moments.LARGE])
    assert tried[-1].cutoff == 12 and tried[-1].clip == 8.0 and tried[-1].low_epsilon is None


def test_a_gain_within_the_spread_is_noise_and_changes_nothing(monkeypatch, records):
    def score(params, dataset, settings, epsilon, seed, records):
        spread = 0.1 * (-1) ** seed
        return spread + 0.05 * (settings.cutoff == 12) + 0.5 * (settings.clip == 8.0)

    monkeypatch.setattr(medical_moments, "score", score)
    rows = medical_moments.search(config.load(), "breast", medical_moments.LARGE, 4, records)
    chosen = {row["setting"]: row["value"] for row in rows if row["chosen"]}
    assert chosen["cutoff"] == medical_moments.START["cutoff"] and chosen["clip"] == 8.0


def test_a_client_shares_no_record_with_the_fold(monkeypatch, records):
    seen = {}
    fit = dp_moments.fit
    scores = medical_moments.scores

    def spied_fit(client, *arguments):
        seen["client"] = set(client.ids.tolist())
        return fit(client, *arguments)

    def spied_scores(model, fold):
        seen["fold"] = set(fold.ids.tolist())
        return scores(model, fold)

    monkeypatch.setattr(dp_moments, "fit", spied_fit)
    monkeypatch.setattr(medical_moments, "scores", spied_scores)
    monkeypatch.setattr(medical_moments, "RECIPE", {**medical_moments.RECIPE, "epochs": 1})
    params = config.load()
    settings = params.generator("breast", "dp_moments")
    value = medical_moments.score(params, "breast", settings, 10.0, 0, records)
    assert 0 <= value <= 1
    assert len(seen["fold"]) == 240 and len(seen["client"]) == medical_moments.RECORDS["breast"]
    assert not seen["fold"] & seen["client"]


def test_the_profiles_have_what_the_stored_search_chose():
    params = config.load()
    chosen = [row for row in common.kept(medical_moments.NAME) if row["chosen"]]
    assert len(chosen) == 2 * (6 + 3)
    for row in chosen:
        settings = params.generator(row["dataset"], "dp_moments")
        # the same at both budgets
        assert getattr(settings, row["setting"]) == row["value"]
        assert settings.low_epsilon is None
