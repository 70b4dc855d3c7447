"""Tests that each epsilon stands beside whom it holds against."""

import math

import pytest

from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.secure_sums import trust
from pipelines.privacy.secure_sums.noise_shares import planned

BUDGET = Budget(1.0, 1e-5)
PLAN = planned(BUDGET, sigmas=(BUDGET.sigma(1.0),), draws=10, clients=10, threshold=9, colluding=5)


def rows(server: str, plan=PLAN) -> list[dict]:
    return [row for row in trust.rows(plan, guarantee="formal") if row["server"] == server]


@pytest.mark.parametrize("server", [trust.DISHONEST, trust.FOLLOWS])
def test_there_is_a_row_for_each_number_of_colluding_clients(server):
    found = rows(server)
    assert [row["colluding"] for row in found] == list(range(10))
    epsilons = [row["epsilon"] for row in found]
    assert epsilons == sorted(epsilons)


def test_the_planned_case_has_the_budgets_epsilon():
    (row,) = [row for row in trust.rows(PLAN, guarantee="formal") if row["planned"]]
    assert (row["server"], row["colluding"], row["shares_of_noise"]) == ("dishonest", 5, 4)
    assert row["epsilon"] == pytest.approx(1.0)
    assert row["delta"] == 1e-5


def test_beyond_the_thresholds_reach_a_dishonest_server_meets_ones_own_share_alone():
    """2 s - K - 1 is 7: with 8 colluding clients two sets can be opened."""
    own = PLAN.epsilon(honest=1)
    found = rows(trust.DISHONEST)
    assert [row["shares_of_noise"] for row in found] == [9, 8, 7, 6, 5, 4, 3, 2, 1, 1]
    assert [row["single_vectors_hidden"] for row in found] == [True] * 8 + [False] * 2
    assert found[-1]["epsilon"] == own
    assert rows(trust.FOLLOWS)[-1]["epsilon"] == own


def test_a_threshold_that_stops_few_liars_shows_sooner():
    plan = planned(
        BUDGET, sigmas=(BUDGET.sigma(1.0),), draws=10, clients=10, threshold=7, colluding=3
    )
    shares = [row["shares_of_noise"] for row in rows(trust.DISHONEST, plan)]
    assert shares == [7, 6, 5, 4, 1, 1, 1, 1, 1, 1]
    shares = [row["shares_of_noise"] for row in rows(trust.FOLLOWS, plan)]
    assert shares == [7, 6, 5, 4, 3, 2, 1, 1, 1, 1]


def test_each_sentence_names_the_server_the_colluding_clients_and_the_relation():
    for row in trust.rows(PLAN, guarantee="formal"):
        text = row["statement"]
        assert f"with {row['colluding']} colluding clients" in text
        assert ("a dishonest server" in text) == (row["server"] == trust.DISHONEST)
        assert f"({row['epsilon']:.4g}, 1e-05)" in text
        assert "add or remove one record" in text
        assert ("a single client's noisy vector" in text) != row["single_vectors_hidden"]


def test_noise_without_a_guarantee_and_epsilons_beyond_the_largest_claim_nothing():
    for row in trust.rows(PLAN, guarantee="none"):
        assert row["epsilon"] == math.inf
        assert row["guarantee"] == "none"
        assert row["statement"].startswith("NO PRIVACY GUARANTEE")
    budget = Budget(20.0, 1e-5)
    plan = planned(
        budget, sigmas=(budget.sigma(1.0),), draws=10, clients=10, threshold=9, colluding=5
    )
    last = trust.rows(plan, guarantee="formal")[-1]
    assert (last["epsilon"], last["guarantee"]) == (math.inf, "none")
