"""Tests the rehearsal of teachers: a client's number of them, stored once, and no test image."""

import pytest

from benchmarks import common, datalens_ablation, datalens_teachers, figures
from pipelines import config
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.synthesis import release
from pipelines.synthesis.datalens import generator as datalens
from pipelines.synthesis.datalens.plan import settled

KEY = {
    "dataset": "mnist",
    "records": 12_000,
    "epsilon": 10.0,
    "records_per_teacher": 15,
    "seed": 0,
}


@pytest.fixture
def params(monkeypatch, tmp_path):
    params = config.load(common.Path(__file__).parents[2] / "params.yaml")
    monkeypatch.setattr(common, "RESULTS", tmp_path / "results")
    return params


def test_a_cell_rehearses_its_client_and_is_stored_once(monkeypatch, params):
    calls = []

    def measure(params, settings, epsilon, seed, train, *, records, dataset):
        calls.append((settings.teachers, epsilon, seed, records, dataset))
        return {"sigma_over_N": 0.1, "accuracy": 0.5, "cpu_seconds": 1.0}

    monkeypatch.setattr(datalens_ablation, "measure", measure)
    shipped = params.generator("mnist", "datalens")
    for key in (KEY, KEY, {**KEY, "records_per_teacher": 30}):
        datalens_teachers._add(params, shipped, key, None)
    assert calls == [(800, 10.0, 0, 12_000, "mnist"), (400, 10.0, 0, 12_000, "mnist")]
    rows = common.kept(datalens_teachers.NAME)
    assert [row["records_per_teacher"] for row in rows] == [15, 30]
    assert "teachers_rule" not in rows[0]["settings"]["generator"]


def test_a_rehearsed_client_has_the_noise_of_all_its_teachers(params):
    settings = params.generator("mnist", "datalens").model_copy(update={"teachers": 800})
    space = release.public_space(params.profiles["mnist"], 12_000)
    plan = datalens_ablation.rehearsed(settings, Budget(1.0, 1e-5), space)
    whole = datalens.plan(settings, Budget(1.0, 1e-5), space)
    assert plan.statement.details["sigma_over_N"] == whole.statement.details["sigma_over_N"]
    assert plan.settings.teachers == datalens_ablation.TEACHERS
    assert plan.settings.latent == settings.high_noise.latent != settings.latent


def test_the_shipped_rule_takes_a_number_that_was_rehearsed(params):
    """Its bounds and the noise it aims at stand among the rows, or a profile names another."""
    tried = {each for numbers in datalens_teachers.CLIENTS.values() for each in numbers}
    assert params.synthesis.datalens.teachers_rule.least_records in tried


def test_the_measured_rows_have_the_teachers_that_their_page_says():
    """Rows without a star are as shipped. Those with one have what the rule gives for their own."""
    page = (figures.TEMPLATES / "datalens_measured.md.j2").read_text()
    assert "settings.generator.cosine is not defined %} *" in page
    params = config.load(common.Path(__file__).parents[2] / "params.yaml")
    for row in figures.rows("synthesis_utility", generator="datalens"):
        shipped = params.generator(row.dataset, "datalens")
        stored = row.settings["generator"]
        if "cosine" not in stored:
            changes = {name: stored[name] for name in ("latent", "top_k", "steps")}
            shipped = shipped.model_copy(update={**changes, "high_noise": None})
        space = release.public_space(params.profiles[row.dataset], row.records)
        budget = Budget(row.epsilon, params.privacy.delta)
        assert stored["teachers"] == settled(shipped, budget, space).teachers
