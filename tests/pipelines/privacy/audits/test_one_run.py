"""Tests the one-run bound against the theorem's own worst case, Gaussians, and known answers."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from pipelines.privacy import accounting
from pipelines.privacy.audits import one_run

MANY = {"canaries": 1000, "guesses": 100}


def literal_p_value(m, r, v, epsilon, delta):
    """Computes Theorem 5.2 term by term."""
    right = 1 / (1 + math.exp(-epsilon))
    tail = sum(binom.pmf(k, r, right) for k in range(v, r + 1))
    steps = [sum(binom.pmf(k, r, right) for k in range(v - i, v)) / i for i in range(1, v + 1)]
    return min(1.0, tail + 2 * m * delta * max(steps))


@pytest.mark.parametrize("m, r, v", [(10, 10, 9), (100, 40, 31), (500, 100, 100)])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-2])
def test_p_value_is_the_theorem_s(m, r, v, epsilon, delta):
    found = one_run.p_value(canaries=m, guesses=r, correct=v, epsilon=epsilon, delta=delta)
    assert found == pytest.approx(literal_p_value(m, r, v, epsilon, delta), rel=1e-9)


def test_all_guesses_right_have_a_closed_form_without_delta():
    """The closed form is q^r = 0.05."""
    right = 0.05 ** (1 / 100)
    found = one_run.epsilon_lower_bound(**MANY, correct=100, delta=0.0)
    assert found == pytest.approx(math.log(right / (1 - right)))


def test_more_right_guesses_prove_more_and_a_larger_delta_less():
    bounds = [one_run.epsilon_lower_bound(**MANY, correct=v, delta=1e-5) for v in range(50, 101, 5)]
    assert bounds == sorted(bounds) and bounds[0] == 0.0 < bounds[3]
    loose = one_run.epsilon_lower_bound(**MANY, correct=90, delta=1e-4)
    assert 0 < loose < one_run.epsilon_lower_bound(**MANY, correct=90, delta=0.0)


def test_no_guess_proves_nothing():
    assert one_run.epsilon_lower_bound(canaries=10, guesses=0, correct=0, delta=0.0) == 0.0


def test_coverage_against_randomised_response_which_meets_the_bound():
    """The tightest case: each guess is right with probability e^epsilon / (1 + e^epsilon)."""
    rng = np.random.default_rng(0)
    correct = rng.binomial(100, 1 / (1 + math.exp(-1.0)), size=300)
    bounds = [one_run.epsilon_lower_bound(**MANY, correct=int(v), delta=0.0) for v in correct]
    assert 0.93 <= np.mean(np.array(bounds) <= 1.0) <= 0.99


@pytest.mark.parametrize("epsilon, least", [(3.0, 0.5), (10.0, 2.2)])
def test_canaries_in_gaussian_noise_prove_part_of_the_claim_and_never_all(epsilon, least):
    mu, rng = accounting.gdp_mu(epsilon=epsilon, delta=1e-5), np.random.default_rng(1)
    found = []
    for _ in range(5):
        included = rng.random(1000) < 0.5
        scores = included + rng.normal(0, 1 / mu, 1000)
        verdict = one_run.audit(scores, included, guesses=100, mu_claimed=mu, delta=1e-5)
        assert verdict.passed and verdict.mu_lower < mu
        found.append(verdict.epsilon_lower)
    assert np.median(found) > least


def test_noise_that_was_dropped_is_caught():
    included = np.random.default_rng(2).random(1000) < 0.5
    mu = accounting.gdp_mu(epsilon=3.0, delta=1e-5)
    assert not one_run.audit(
        included + 0.0, included, guesses=100, mu_claimed=mu, delta=1e-5
    ).passed


def test_the_ends_are_called_and_the_middle_abstains():
    scores = np.array([5.0, -1.0, 0.1, 0.2, 4.0, -2.0])
    included = np.array([True, False, True, False, False, False])
    assert one_run.correct_guesses(scores, included, 4) == 3
    assert one_run.correct_guesses(scores, included, 2) == 2
    assert one_run.correct_guesses(scores, included, 0) == 0
