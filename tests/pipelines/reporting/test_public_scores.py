"""What DVC may show: a published data set's scores alone, of few methods."""

from types import SimpleNamespace

import pytest

from pipelines.reporting import public_scores

PUBLISHED = SimpleNamespace(is_public=True)
OWN = SimpleNamespace(is_public=False)


def method(own: float, everybody: list[float], *, weak: bool = False, epsilon: float = 0.0) -> dict:
    elsewhere = {f"c{index}": value for index, value in enumerate(everybody)}
    figures = {"mean_accuracy": own, "epsilon_max": epsilon, "weak": weak}
    return {**figures, "clients_elsewhere": elsewhere}


@pytest.fixture
def summary() -> dict:
    methods = {
        "local": method(0.9, [0.5, 0.7]),
        "pppfl/datalens": method(0.1, [0.1], weak=True, epsilon=10.0),
        "pppfl/dp_moments": method(0.92, [0.8, 0.9], epsilon=8.0),
        "pppfl_paper/dp_moments": method(0.3, [0.3], epsilon=10.0),
        "adap": method(0.2, [0.2], epsilon=10.0),
    }
    return {"methods": methods}


def test_a_published_data_set_has_a_dozen_figures(summary):
    assert public_scores.metrics(summary, PUBLISHED) == {
        "local_own": 0.9,
        "local_everybody": pytest.approx(0.6),
        "pppfl_own": 0.92,
        "pppfl_everybody": pytest.approx(0.85),
        "largest_epsilon": 8.0,
    }


def test_own_images_have_none(summary):
    assert public_scores.metrics(summary, OWN) == {}


def test_all_that_ran_are_few_columns():
    methods = {name: method(0.5, [0.5]) for name in public_scores.SHOWN}
    assert len(public_scores.metrics({"methods": methods}, PUBLISHED)) <= 12


def test_a_generator_that_makes_noise_stands_only_where_there_is_no_other(summary):
    del summary["methods"]["pppfl/dp_moments"]
    assert public_scores.columns(summary["methods"])["pppfl"] == "pppfl/datalens"


def test_nothing_ran():
    assert public_scores.metrics({"methods": {}}, PUBLISHED) == {"largest_epsilon": 0.0}


def test_rounds_have_the_methods_shown_alone():
    rows = [
        {"round": "1", "pppfl/dp_moments": "0.5", "adap": "0.1"},
        {"round": "2", "pppfl/dp_moments": "", "adap": "0.2"},
    ]
    (row,) = public_scores.rounds(rows, {"pppfl": "pppfl/dp_moments", "local": "local"})
    assert tuple(row) == public_scores.COLUMNS
    assert {name: value for name, value in row.items() if value} == {"round": "1", "pppfl": "0.5"}
