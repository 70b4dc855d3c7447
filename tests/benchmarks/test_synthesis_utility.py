"""Tests the benchmark's bookkeeping.

Restarts measure nothing twice, other settings are measured again, and the best is the best.
"""

import pytest

from benchmarks import common, synthesis_utility
from pipelines import config

KEY = {"generator": "dp_moments", "dataset": "mnist", "records": 12_000, "epsilon": 10.0}


@pytest.fixture
def params(monkeypatch, tmp_path):
    params = config.load(common.Path(__file__).parents[2] / "params.yaml")
    monkeypatch.setattr(common, "RESULTS", tmp_path / "results")
    return params


@pytest.fixture
def measured(monkeypatch):
    """Returns the list of (key, seed) of each measurement. Accuracies are 0.5, 0.6, ... in turn."""
    calls = []

    def measure(params, key, seed, train, test):
        calls.append((tuple(key.values()), seed))
        value = 0.4 + 0.1 * len(calls)
        return {"seed": seed, "accuracy": value, "itself": None, "fid": 1.0, "cpu_seconds": 2.0}

    monkeypatch.setattr(synthesis_utility, "measure", measure)
    return calls


def test_each_cell_is_kept_when_done_and_not_measured_again(params, measured):
    for seed in (1, 0, 1, 0):
        synthesis_utility._add(params, KEY, seed, None, None)
    assert [seed for _, seed in measured] == [1, 0]
    (line,) = common.kept("synthesis_utility")
    assert [run["seed"] for run in line["runs"]] == [0, 1]
    assert line["accuracy"] == pytest.approx(0.55) and line["spread"] == pytest.approx(0.05)
    assert line["target"] == 0.955 and line["best_published"] == 0.981


def test_other_settings_are_measured_anew(params, measured):
    synthesis_utility._add(params, KEY, 0, None, None)
    profile = params.profiles["mnist"]
    moments = {**profile.synthesis["dp_moments"], "inflation": 1.3}
    other = profile.model_copy(update={"synthesis": {**profile.synthesis, "dp_moments": moments}})
    changed = params.model_copy(update={"profiles": {**params.profiles, "mnist": other}})
    synthesis_utility._add(changed, KEY, 0, None, None)
    (line,) = common.kept("synthesis_utility")
    assert len(measured) == 2 and len(line["runs"]) == 1 and line["accuracy"] == pytest.approx(0.6)


def test_the_best_private_classifier_is_named_and_non_private_ones_are_not():
    line = {"dataset": "mnist", "records": 12_000, "epsilon": 10.0, "accuracy": 0.9, "itself": None}
    rows = [
        {**line, "generator": "dp_moments"},
        {**line, "generator": "dp_teacher", "accuracy": 0.8, "itself": 0.95},
        {**line, "generator": "gan", "accuracy": 0.99, "epsilon": None},
        {
            **line,
            "generator": "dp_moments",
            "accuracy": 0.98,
            "epsilon": synthesis_utility._epsilon("inf"),
        },
        {**line, "generator": "real", "accuracy": 0.99, "epsilon": None},
    ]
    found = {"best private, mnist 12000 epsilon 10": "0.9500, the classifier of dp_teacher"}
    assert synthesis_utility.best(rows) == found


def test_a_number_of_teachers_and_auto_that_comes_to_it_are_one_cell(params, measured):
    key = {**KEY, "generator": "datalens"}
    synthesis_utility._add(params, key, 0, None, None)
    (line,) = common.kept("synthesis_utility")
    teachers = line["settings"]["generator"]["teachers"]
    assert teachers == synthesis_utility.planned(params, key).settings.teachers
    profile = params.profiles["mnist"]
    named = {**profile.synthesis["datalens"], "teachers": teachers}
    other = profile.model_copy(update={"synthesis": {**profile.synthesis, "datalens": named}})
    changed = params.model_copy(update={"profiles": {**params.profiles, "mnist": other}})
    synthesis_utility._add(changed, key, 0, None, None)
    assert len(measured) == 1


def test_the_teachers_of_a_cell_follow_its_records_and_its_budget(params):
    def count(records, epsilon):
        key = {**KEY, "generator": "datalens", "records": records, "epsilon": epsilon}
        return synthesis_utility.planned(params, key).settings.teachers

    assert count(60_000, 1.0) > count(60_000, 10.0) > count(12_000, 10.0)
    assert count(60_000, None) <= count(60_000, 10.0)
