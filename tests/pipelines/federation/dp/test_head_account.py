"""Tests the account of a noisy head: its parts are the budget, whatever a server plans."""

import math

import pytest

from pipelines.config.dp import DpsgdHead
from pipelines.federation.dp.head_account import HeadAccount
from pipelines.privacy import accounting
from pipelines.privacy.accounting import Steps
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy, SeededForTests

SETTINGS = DpsgdHead(
    rounds=11,
    count_share=0.05,
    clipping_norm=0.5,
    schedules=[{"from_signal": 0.0, "steps": 10, "learning_rate": 1.0}],
)


def account(epsilon: float = 3.0) -> HeadAccount:
    return HeadAccount(epsilon, 1e-5, SETTINGS)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("planned", [1, 4, 10, 1000])
def test_count_and_steps_spend_exactly_the_budget(epsilon, planned):
    held = account(epsilon)
    held.fix_steps(planned)
    assert held.affordable == min(planned, 10)
    assert held.epsilon_spent < min(epsilon, 30.0)
    while held.take(1):
        pass
    assert held.steps == min(planned, 10)
    steps = math.sqrt(held.steps) / held.noise_multiplier
    spent = accounting.compose([1 / held.count_sigma, steps])
    assert spent == pytest.approx(Budget(min(epsilon, 30.0), 1e-5).mu, rel=1e-9)
    assert held.epsilon_spent == pytest.approx(min(epsilon, 30.0), rel=1e-9)
    assert held.cost == {"kind": "gaussian", "mu": pytest.approx(spent)}
    assert accounting.total_epsilon(costs=[held.cost], delta=1e-5) <= held.claim


def test_a_second_plan_changes_nothing():
    held = account()
    held.fix_steps(2)
    before = held.noise_multiplier
    held.take(1)
    held.fix_steps(10)
    assert (held.noise_multiplier, held.left) == (before, 1)


def test_before_a_plan_the_noise_is_that_of_one_step():
    """A server learns 1 / mu from it, which plans the steps."""
    held = account()
    assert 1 / held.noise_multiplier == pytest.approx(held.mu_of_steps)


def test_an_infinite_budget_has_no_noise_and_claims_nothing():
    held = account(math.inf)
    held.fix_steps(5)
    assert (held.noise_multiplier, held.count_sigma, held.epsilon_spent) == (0.0, 0.0, math.inf)
    assert held.statement(OsEntropy()).guarantee == "none"


def test_the_statement_names_discrete_noise_and_no_cancelling_server():
    stated = account().statement(OsEntropy(), 1e-5)
    assert (stated.guarantee, stated.epsilon, stated.sampling) == ("formal", 3.0, "none")
    assert stated.mu == pytest.approx(Budget(3.0, 1e-5).mu)
    assert "discrete Gaussian" in stated.noise
    assert not any("cancel" in text for text in stated.not_covered)
    assert account().statement(SeededForTests(0)).guarantee == "none"


def test_a_head_starts_from_nothing_released():
    with pytest.raises(ValueError, match="starts from nothing"):
        HeadAccount(3.0, 1e-5, SETTINGS, (Steps(1.0, 1.0, 1),))
