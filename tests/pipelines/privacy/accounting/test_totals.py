"""Tests all kinds of releases together, each against the case to which it must reduce."""

import math

import pytest

from pipelines.privacy import accounting
from pipelines.privacy.accounting import Steps

DELTA = 1e-5
GAUSSIAN = {"kind": "gaussian", "mu": 0.4}
SAMPLED = {"kind": "sampled_gaussian", "schedule": [[1.5, 0.1, 30], [1.2, 0.1, 10]]}
FILTERED = {"kind": "renyi", "order": 8.0, "rdp": 0.1}


def total(*costs: dict) -> float:
    return accounting.total_epsilon(costs=list(costs), delta=DELTA)


def test_each_kind_alone():
    schedule = [Steps(*steps) for steps in SAMPLED["schedule"]]
    assert total() == 0.0
    assert total(GAUSSIAN, GAUSSIAN) == accounting.gdp_epsilon(mu=0.4 * math.sqrt(2), delta=DELTA)
    assert total(SAMPLED) == accounting.schedule_epsilon_pld(schedule=schedule, delta=DELTA)
    assert total({"kind": "none"}, GAUSSIAN) == math.inf
    filtered = accounting.RenyiFilter(epsilon=9.0, delta=DELTA, order=8.0, spent=0.1)
    assert total(FILTERED) == pytest.approx(
        filtered.epsilon_spent
    )  # no smaller order is cheaper here


def test_together_they_cost_more_than_apart_and_less_than_the_sum():
    for first, second in [(GAUSSIAN, SAMPLED), (GAUSSIAN, FILTERED), (SAMPLED, FILTERED)]:
        assert (
            max(total(first), total(second))
            < total(first, second)
            < total(first) + total(second) + 1.0
        )


def test_a_gaussian_is_a_sampled_one_at_rate_one():
    as_sampled = {"kind": "sampled_gaussian", "schedule": [[1 / 0.4, 1.0, 1]]}
    assert total(as_sampled, SAMPLED) == pytest.approx(total(GAUSSIAN, SAMPLED), rel=1e-3)


def test_filters_of_different_orders_hold_up_to_the_smaller():
    other = {"kind": "renyi", "order": 4.0, "rdp": 0.05}
    assert (
        total(FILTERED, other) >= accounting.rdp_epsilon(rdp=0.15, order=4.0, delta=DELTA) - 1e-12
    )


def test_a_zero_step_run_is_free_and_a_huge_total_is_no_claim():
    assert total({"kind": "sampled_gaussian", "schedule": [[1.0, 0.1, 0]]}) == 0.0
    assert total({"kind": "gaussian", "mu": 9.0}) == math.inf


def test_equal_steps_of_two_runs_cost_as_the_library_composes_them():
    """They are counted together; composed one after the other they come to the same."""
    one = {"kind": "sampled_gaussian", "schedule": [[2.0, 0.2, 40]]}
    apart = {"kind": "sampled_gaussian", "schedule": [[2.0 + 1e-12, 0.2, 40]]}
    assert total(one, one, GAUSSIAN) == pytest.approx(total(one, apart, GAUSSIAN), abs=1e-8)
