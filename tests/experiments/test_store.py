"""Tests stored figures: nothing is measured twice, other settings are measured again, other runs
stay.
"""

import json
import math

import pytest

from experiments import store
from experiments.plans import Run
from pipelines.errors import UserError

RUN = Run("mnist", 0, "", {}, (), ())
OTHER = Run("mnist", 1, "", {}, (), ())


def test_a_run_is_found_under_its_settings_alone(results):
    store.keep("t", RUN, {"rounds": 30}, {"methods": {"a": 1}})
    rows = store.kept("t")
    assert store.found(rows, RUN, {"rounds": 30})["methods"] == {"a": 1}
    assert store.found(rows, RUN, {"rounds": 31}) is None
    assert store.found(rows, OTHER, {"rounds": 30}) is None


def test_other_settings_give_way_and_other_runs_stay(results):
    store.keep("t", OTHER, {"rounds": 30}, {"methods": 1})
    store.keep("t", RUN, {"rounds": 30}, {"methods": 2})
    store.keep("t", RUN, {"rounds": 31}, {"methods": 3})
    assert [(row["seed"], row["methods"]) for row in store.kept("t")] == [(0, 3), (1, 1)]


def test_the_file_is_standard_json_with_a_line_per_run(results):
    for run in (RUN, OTHER):
        store.keep("t", run, {}, {"epsilon_max": math.inf, "fid": math.nan})
    text = (results / "t.json").read_text()
    assert len(text.splitlines()) == 4
    assert json.loads(text, parse_constant=pytest.fail)["runs"][0]["epsilon_max"] == "inf"


def test_a_broken_file_is_named(results):
    results.mkdir()
    (results / "t.json").write_text('{"runs": [')
    with pytest.raises(UserError, match=r"Could not read .*t\.json"):
        store.kept("t")
    assert store.kept("absent") == []
