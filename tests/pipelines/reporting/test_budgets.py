import math

import pytest

from pipelines.privacy import accounting
from pipelines.privacy.accounting import Steps
from pipelines.reporting import budgets, findings

DELTA = 1e-5
MU = accounting.gdp_mu(epsilon=3.0, delta=DELTA)
GAUSSIAN = {"cost": {"kind": "gaussian", "mu": MU}}
SAMPLED = {"cost": {"kind": "sampled_gaussian", "schedule": [[1.5, 0.2, 30]]}}


def test_gaussian_releases_compose_exactly():
    assert budgets.total([GAUSSIAN], DELTA)["epsilon"] == pytest.approx(3.0)
    twice = accounting.gdp_epsilon(mu=MU * math.sqrt(2), delta=DELTA)
    assert budgets.total([GAUSSIAN] * 2, DELTA)["epsilon"] == pytest.approx(twice)


def test_a_sampled_release_costs_less_in_company_than_on_top():
    alone = accounting.schedule_epsilon_pld(schedule=[Steps(1.5, 0.2, 30)], delta=DELTA)
    assert max(3.0, alone) < budgets.total([GAUSSIAN, SAMPLED], DELTA)["epsilon"] < 3.0 + alone


def test_one_release_without_a_guarantee_voids_the_total():
    total = budgets.total([GAUSSIAN, {"cost": {"kind": "none"}}, *[GAUSSIAN] * 50], DELTA)
    assert (total["epsilon"], total["guarantee"]) == (math.inf, "none") and findings.not_private(
        total
    )


def test_formal_releases_that_pass_the_largest_epsilon_together_claim_nothing_and_are_no_leak():
    total = budgets.total([GAUSSIAN] * 50, DELTA)
    assert (total["epsilon"], total["guarantee"]) == (math.inf, budgets.BEYOND)
    assert not findings.not_private(total)


def test_nothing_released_costs_nothing():
    assert budgets.total([], DELTA)["epsilon"] == 0.0
