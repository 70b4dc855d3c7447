"""Tests the rehearsal: its noise scales with the teachers, and validation images are no teacher's.

Nothing is measured twice.
"""

import math

import numpy as np
import pytest

from benchmarks import common, datalens_ablation
from pipelines import config
from pipelines.config.generators import Datalens
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.synthesis import release
from pipelines.synthesis.datalens import generator as datalens


@pytest.fixture
def params(monkeypatch, tmp_path):
    params = config.load(common.Path(__file__).parents[2] / "params.yaml")
    monkeypatch.setattr(common, "RESULTS", tmp_path / "results")
    return params


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_a_rehearsal_has_the_noise_per_teacher_of_the_real_run_and_claims_nothing(params, epsilon):
    settings, budget = datalens_ablation.shipped_settings(params), Budget(epsilon, 1e-5)
    space = release.public_space(params.profiles["mnist"])
    plan = datalens_ablation.rehearsed(settings, budget, space)
    real = (
        2
        * math.sqrt(settings.top_k * settings.batch * settings.steps)
        / budget.mu
        / settings.teachers
    )
    assert plan.settings.teachers == datalens_ablation.TEACHERS < settings.teachers
    assert plan.statement.details["sigma"] / plan.settings.teachers == pytest.approx(real)
    assert plan.statement.guarantee == "none" and plan.statement.epsilon == math.inf


@pytest.mark.parametrize("option", datalens_ablation.OPTIONS)
def test_every_option_but_the_shipped_one_changes_a_valid_setting(params, option):
    base = datalens_ablation.shipped_settings(params)
    settings, epsilon = datalens_ablation.asked(base, datalens_ablation.OPTIONS[option])
    assert Datalens.model_validate(settings.model_dump()) == settings
    assert (settings == base and epsilon == 10.0) == (option == "shipped")


def test_validation_images_are_no_teachers(monkeypatch, params):
    count, seen = 9 * datalens_ablation.RECORDS // 10, {}
    train = Images(
        np.zeros((count, 1, 1, 1), np.uint8), np.zeros(count, np.int64), np.arange(count)
    )
    monkeypatch.setattr(datalens, "fit", lambda shard, *_: seen.update(teachers=shard.ids))
    monkeypatch.setattr(datalens, "sample", lambda *_: train)
    monkeypatch.setattr(datalens_ablation.classifier, "fit", lambda *_, **__: 0)
    monkeypatch.setattr(
        datalens_ablation, "scores", lambda _, held: seen.update(held=held.ids) or {"accuracy": 0.0}
    )
    settings = datalens_ablation.shipped_settings(params)
    datalens_ablation.measure(params, settings, 10.0, 0, train)
    each = datalens_ablation.RECORDS / settings.teachers
    assert len(seen["teachers"]) == round(each * datalens_ablation.TEACHERS)
    assert (
        not set(seen["teachers"]) & set(seen["held"])
        and len(seen["held"]) == datalens_ablation.VALIDATION
    )


def test_a_row_is_measured_once_and_anew_under_other_settings(monkeypatch, params):
    calls = []

    def measure(params, settings, epsilon, seed, train, dataset):
        calls.append(settings)
        return {"sigma_over_N": 0.1, "accuracy": 0.5, "cpu_seconds": 1.0}

    monkeypatch.setattr(datalens_ablation, "measure", measure)
    base = datalens_ablation.shipped_settings(params)
    key = {"dataset": "mnist", "option": "shipped", "seed": 0}
    for settings in (base, base, base.model_copy(update={"latent": 3})):
        datalens_ablation._add(params, settings, key, None)
    assert [settings.latent for settings in calls] == [base.latent, 3]
    (row,) = common.kept(datalens_ablation.NAME)
    assert row["settings"]["latent"] == 3
