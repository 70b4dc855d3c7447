"""Tests noise in shares: its law, its distance from one discrete Gaussian, and what it costs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from pipelines.privacy import accounting
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import WIDEST, OsEntropy, SeededForTests
from pipelines.privacy.secure_sums.noise_shares import SharePlan, distance_of_sums, noisy, planned
from pipelines.privacy.secure_sums.refusals import Refusal

BUDGET = Budget(3.0, 1e-5)


def plan_of(clients=6, threshold=5, colluding=2, budget=BUDGET, sigmas=(2.0, 1.0), draws=50):
    return planned(
        budget,
        sigmas=sigmas,
        draws=draws,
        clients=clients,
        threshold=threshold,
        colluding=colluding,
    )


def law(steps: float, width: int) -> np.ndarray:
    """Returns the probabilities of a discrete Gaussian at the integers -width to width."""
    values = np.exp(-(np.arange(-width, width + 1.0) ** 2) / (2 * steps * steps))
    return values / values.sum()


def law_of_sum(steps: float, count: int, width: int) -> np.ndarray:
    """Returns those of a sum of discrete Gaussians, by plain convolution."""
    total = law(steps, width)
    for _ in range(count - 1):
        total = np.convolve(total, law(steps, width))
    return total


def deviation_of_sum(plan: SharePlan, number: int, unknown: int, draws: int = 4000) -> float:
    """Returns the deviation of a sum of shares as it is measured, in original units."""
    zeros = np.zeros(draws, np.int64)
    total = sum(noisy(zeros, plan, number, noise=OsEntropy()) for _ in range(unknown))
    return float(np.sqrt(np.mean((total / plan.scale) ** 2)))


def is_deviation(measured: float, expected: float, draws: int = 4000) -> bool:
    """Returns whether a measured deviation is that of Gaussian noise, but for one case in 1e8."""
    low, high = chi2.ppf([5e-9, 1 - 5e-9], draws)
    return low < draws * (measured / expected) ** 2 < high


@pytest.mark.parametrize("number", [0, 1])
def test_the_shares_that_nobody_knows_have_the_planned_deviation_together(number):
    """The fewest honest clients of a sum, each with a share of its own."""
    plan = plan_of()
    assert plan.least_honest == 3
    measured = deviation_of_sum(plan, number, plan.least_honest)
    assert is_deviation(measured, plan.sigmas[number])
    assert not is_deviation(measured, plan.sigmas[number] / math.sqrt(2))
    # a client that adds none shows
    assert not is_deviation(measured * math.sqrt(2 / 3), plan.sigmas[number])


def test_each_client_draws_another_share():
    plan = plan_of()
    first, second = (noisy(np.zeros(200, np.int64), plan, 0, noise=OsEntropy()) for _ in range(2))
    assert not (first == second).any()


def test_noise_is_added_to_the_sum_and_changes_nothing_else():
    plan = plan_of()
    total = np.arange(200) * plan.scale
    assert (
        noisy(total, plan, 0, noise=SeededForTests(1)) - total
        == noisy(np.zeros(200, np.int64), plan, 0, noise=SeededForTests(1))
    ).all()


def test_a_sum_that_outgrows_64_bits_wraps_and_nothing_fails():
    plan = plan_of()
    edge = np.array([2**63 - 1])
    with np.errstate(over="raise"):
        left = noisy(edge, plan, 0, noise=SeededForTests(3))
    share = noisy(np.zeros(1, np.int64), plan, 0, noise=SeededForTests(3))
    assert (int(left[0]) - int(share[0]) - (2**63 - 1)) % 2**64 == 0


@pytest.mark.parametrize("steps", [math.sqrt(0.5), 0.8, 1.0, 1.3])
@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_a_sum_of_discrete_gaussians_is_as_near_to_one_as_the_theorem_says(steps, count):
    width = 30
    found = law_of_sum(steps, count, width)
    exact = law(steps * math.sqrt(count), (len(found) - 1) // 2)
    middle = slice(len(found) // 2 - 12, len(found) // 2 + 13)
    largest = np.abs(np.log(found[middle] / exact[middle])).max()
    assert largest <= distance_of_sums(steps, count) + 1e-12
    if count > 1 and steps == math.sqrt(0.5):
        # a control: without the factor of 10 the bound would be too small somewhere, or nearly
        assert largest > distance_of_sums(steps, count) / 100


def test_below_the_theorems_least_variance_no_distance_is_claimed():
    assert distance_of_sums(0.7, 2) == math.inf


@settings(deadline=None, max_examples=30)
@given(
    epsilon=st.floats(0.1, 25),
    delta=st.floats(1e-6, 1e-3),
    draws=st.integers(1, 5000),
    clients=st.integers(3, 50),
    data=st.data(),
)
def test_the_planned_case_costs_the_budget_and_all_distances_fit_into_delta(
    epsilon, delta, draws, clients, data
):
    colluding = data.draw(st.integers(0, clients - 1))
    least = (clients + colluding) // 2 + 1
    threshold = data.draw(st.integers(least, clients))
    budget = Budget(epsilon, delta)
    half = budget.sigma(0.5)
    plan = plan_of(clients, threshold, colluding, budget, (half, half), draws)
    found = plan.epsilon(honest=plan.least_honest)
    assert found == pytest.approx(epsilon, rel=1e-6)
    steps = min(plan.share_steps(0), plan.share_steps(1))
    assert steps >= 8
    distance = draws * distance_of_sums(steps, clients)
    slack = accounting.rounding_slack(epsilon=accounting.LARGEST_EPSILON, sigma=steps, draws=draws)
    assert math.exp(distance) * (accounting.gdp_delta(epsilon=epsilon, mu=plan.mu) + slack) <= (
        delta * (1 + 1e-7)
    )


def brute_force_delta(steps: float, count: int, shift: int, epsilon: float) -> float:
    """Returns delta of a sum of shares at neighbouring totals, by the definition."""
    here = law_of_sum(steps, count, math.ceil(9 * steps))
    there = np.zeros(len(here) + 2 * shift)
    there[2 * shift :] = here
    near = np.zeros(len(here) + 2 * shift)
    near[: len(here)] = here
    return float(np.maximum(near - math.exp(epsilon) * there, 0).sum())


@pytest.mark.parametrize("honest", [1, 2, 3, 5])
def test_no_case_costs_more_than_its_epsilon_by_brute_force(honest):
    """One integer is released, of sensitivity 1. Its lattice is coarse, so that sums are exact."""
    budget = Budget(2.0, 1e-2)
    plan = SharePlan(budget, (budget.sigma(1.0),), 1, 6, 5, 2, scale=64)
    epsilon = plan.epsilon(honest=honest)
    steps = plan.share_steps(0)
    # brute force moves by an even number of steps, so that half of it is an integer
    assert brute_force_delta(steps, honest, plan.scale // 2, epsilon) <= budget.delta
    assert brute_force_delta(steps, honest, plan.scale // 2, epsilon * 0.98) > budget.delta


def test_more_unknown_shares_cost_less():
    plan = plan_of(clients=50, threshold=38, colluding=25)
    found = [plan.epsilon(honest=honest) for honest in range(1, 39)]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == len(found)


def test_beyond_the_largest_epsilon_nothing_is_claimed():
    budget = Budget(20.0, 1e-5)
    plan = plan_of(clients=50, threshold=38, colluding=25, budget=budget, sigmas=(1 / budget.mu,))
    assert plan.epsilon(honest=1) == math.inf


def test_an_infinite_budget_adds_no_noise_and_says_so():
    plan = plan_of(budget=Budget(math.inf, 1e-5), sigmas=(1.0,))
    total = np.arange(3)
    assert noisy(total, plan, 0, noise=OsEntropy()).tolist() == [0, 1, 2]
    assert plan.epsilon(honest=3) == math.inf
    assert plan.words(0) == "no noise, and no privacy"


def test_plans_that_are_not_safe_are_refused():
    with pytest.raises(Refusal, match=r"threshold must be in \[5, 6\]. Got 4"):
        plan_of(threshold=4)
    with pytest.raises(Refusal, match="epsilon must be larger: 64 bits have no room"):
        plan_of(sigmas=(1.0, WIDEST))
    with pytest.raises(Refusal, match="delta must be larger"):
        plan_of(budget=Budget(3.0, 1e-300))


def test_another_share_has_other_words():
    words = {plan_of().words(0), plan_of().words(1), plan_of(threshold=6).words(0)}
    assert len(words) == 3


def test_the_bound_of_all_clients_together_is_half_of_what_64_bits_hold():
    plan = plan_of()
    assert plan.bound * 6 <= 2**62 < (plan.bound + 1) * 6
