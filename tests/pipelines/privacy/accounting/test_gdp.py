"""Tests golden values (the DataLens table, the 1 / mu table), an independent accountant, and
monotonicity.
"""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from pipelines.privacy import accounting

DELTA = 1e-5


@pytest.mark.parametrize(
    "k, sigma, queries, per_query, classic, order, mu, exact",
    [
        (200, 5000, 15, 1.6e-5, 0.105906, 199, 0.021909, 0.064821),
        (200, 5000, 1290, 1.6e-5, 0.995705, 25, 0.203175, 0.738125),
        (300, 800, 1635, 9.375e-4, 9.968892, 4, 1.750893, 8.496269),
        (350, 1000, 2190, 7e-4, 9.969642, 4, 1.751000, 8.496900),
        (700, 9000, 1200, 1.7283951e-5, 0.998224, 25, 0.203670, 0.740093),
        (500, 700, 750, 2.0408163e-3, 9.960091, 4, 1.749636, 8.488862),
        (300, 5000, 4500, 2.4e-5, 2.339293, 11, 0.464758, 1.837078),
    ],
)
def test_datalens_golden_values(k, sigma, queries, per_query, classic, order, mu, exact):
    one = 2 * math.sqrt(k) / sigma
    composed = accounting.compose([one] * queries)
    assert one**2 / 2 == pytest.approx(per_query, rel=1e-6)
    assert composed == pytest.approx(mu, abs=5e-7)
    assert accounting.gdp_epsilon(mu=composed, delta=DELTA) == pytest.approx(exact, abs=1e-6)
    assert accounting.classic_epsilon(mu=composed, delta=DELTA) == (
        pytest.approx(classic, abs=1e-6),
        order,
    )


@pytest.mark.parametrize(
    "epsilon, noise, digits",
    [
        (0.2, 16.30, 2),
        (0.5, 7.03, 2),
        (1, 3.7306, 4),
        (2, 1.9938, 4),
        (3, 1.3906, 4),
        (5, 0.8919, 4),
        (10, 0.4999, 4),
    ],
)
def test_noise_of_a_single_release_golden_values(epsilon, noise, digits):
    assert round(1 / accounting.gdp_mu(epsilon=epsilon, delta=DELTA), digits) == pytest.approx(
        noise
    )


@pytest.mark.parametrize(
    "epsilon, runs, total", [(1, 5, 2.44), (1, 10, 3.62), (10, 5, 28), (10, 10, 46)]
)
def test_repeated_runs_compose_to_the_published_totals(epsilon, runs, total):
    mu = accounting.gdp_mu(epsilon=epsilon, delta=DELTA)
    composed = accounting.gdp_epsilon(mu=accounting.compose([mu] * runs), delta=DELTA)
    assert composed == pytest.approx(total, abs=0.005 if total < 10 else 0.5)


@pytest.mark.parametrize(
    "epsilon, batch, true_epsilon", [(10, 15, 62), (10, 30, 106), (1, 15, 4.6)]
)
def test_a_batch_charged_once_would_cost_far_more_than_claimed(epsilon, batch, true_epsilon):
    mu = accounting.gdp_mu(epsilon=epsilon, delta=DELTA)
    total = accounting.gdp_epsilon(mu=mu * math.sqrt(batch), delta=DELTA)
    assert total == pytest.approx(true_epsilon, abs=0.05 if true_epsilon < 10 else 0.6)


def test_gdp_delta_is_the_hockey_stick_of_two_normals():
    """The oracle is numerical integration of max(0, p - e^eps q), which shares no formula with the
    code.
    """
    grid = np.linspace(-14, 16, 600_001)
    for mu, epsilon in [(0.3, 0.5), (1.0, 1.0), (2.0, 5.0), (2.0, 0.0)]:
        p, q = np.exp(-((grid - mu) ** 2) / 2), np.exp(-(grid**2) / 2)
        expected = np.trapezoid(np.maximum(0, p - math.exp(epsilon) * q), grid) / math.sqrt(
            2 * math.pi
        )
        assert accounting.gdp_delta(epsilon=epsilon, mu=mu) == pytest.approx(
            expected, rel=1e-6, abs=1e-12
        )


@pytest.mark.parametrize("mu, delta", [(0.2, 1e-5), (0.5, 1e-6), (1.75, 1e-5), (3.0, 1e-5)])
def test_gdp_epsilon_is_the_pld_of_a_plain_gaussian(mu, delta):
    accountant = pld.PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(1 / mu))
    assert accounting.gdp_epsilon(mu=mu, delta=delta) == pytest.approx(
        accountant.get_epsilon(delta), rel=1e-3
    )


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 1.7, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0, 10.0])
def test_gdp_delta_is_dp_accounting_s_to_a_millionth(mu, epsilon):
    theirs = pld.privacy_loss_mechanism.GaussianPrivacyLoss(1 / mu).get_delta_for_epsilon(epsilon)
    assert accounting.gdp_delta(epsilon=epsilon, mu=mu) == pytest.approx(
        theirs, rel=1e-6, abs=1e-250
    )


@settings(deadline=None, max_examples=60)
@given(epsilon=st.floats(0.01, 29), delta=st.floats(1e-12, 0.4))
def test_mu_and_epsilon_are_inverse(epsilon, delta):
    mu = accounting.gdp_mu(epsilon=epsilon, delta=delta)
    assert accounting.gdp_epsilon(mu=mu, delta=delta) == pytest.approx(epsilon, rel=1e-6)


@settings(deadline=None, max_examples=60)
@given(
    mu=st.floats(0.01, 8),
    more=st.floats(1.05, 3),
    delta=st.floats(1e-10, 0.01),
)
def test_epsilon_grows_with_mu_and_falls_with_delta(mu, more, delta):
    epsilon = accounting.gdp_epsilon(mu=mu, delta=delta)
    assert accounting.gdp_epsilon(mu=mu * more, delta=delta) >= epsilon
    assert accounting.gdp_epsilon(mu=mu, delta=delta * more) <= epsilon
    assert (
        accounting.classic_epsilon(mu=mu, delta=delta)[0] >= epsilon
    )  # the papers' conversion is never tighter


@settings(deadline=None, max_examples=40)
@given(epsilon=st.floats(1e-14, 1e6), delta=st.floats(1e-300, 1 - 1e-9))
def test_every_legal_budget_has_a_mu_that_keeps_it(epsilon, delta):
    mu = accounting.gdp_mu(epsilon=epsilon, delta=delta)
    assert mu > 0
    assert accounting.gdp_delta(epsilon=epsilon, mu=mu) <= delta * (1 + 1e-6) + 1e-12


def test_infinite_and_huge_budgets():
    assert accounting.gdp_mu(epsilon=math.inf, delta=DELTA) == math.inf
    assert accounting.gdp_epsilon(mu=math.inf, delta=DELTA) == math.inf
    assert accounting.gdp_epsilon(mu=0.0, delta=DELTA) == 0.0
    largest = accounting.gdp_mu(epsilon=accounting.LARGEST_EPSILON, delta=DELTA)
    assert accounting.gdp_mu(epsilon=1e9, delta=DELTA) == largest


@pytest.mark.parametrize("sigma", [8.0, 8.37, 11.0, 16.5, 40.0, 200.0])
def test_rounding_slack_bounds_the_distance_of_discrete_from_rounded_gaussian(sigma):
    """The oracle is brute force over the lattice.

    0.4 of the bound is reached, so a bound a third as large would fail.
    """
    points = np.arange(-int(14 * sigma), int(14 * sigma) + 1)
    discrete = np.exp(-(points**2) / (2 * sigma**2))
    discrete /= discrete.sum()
    rounded = ndtr((points + 0.5) / sigma) - ndtr((points - 0.5) / sigma)
    distance = np.abs(discrete - rounded).sum() / 2
    bound = 1 / (24 * sigma**2)
    assert 0.4 * bound <= distance <= bound
    assert accounting.rounding_slack(epsilon=2.0, sigma=sigma, draws=7) == pytest.approx(
        (1 + math.e**2) * 7 * bound
    )


def test_rounding_slack_refuses_a_coarse_lattice():
    assert accounting.rounding_slack(epsilon=1.0, sigma=7.99, draws=1) >= 1


@pytest.mark.parametrize(
    "sigma, shift, epsilon", [(8.0, 8, 1.0), (8.0, 16, 5.0), (12.0, 3, 0.2), (9.5, 19, 10.0)]
)
def test_discrete_gaussian_keeps_the_continuous_delta_plus_slack(sigma, shift, epsilon):
    points = np.arange(-int(20 * sigma), int(20 * sigma) + shift + 1)
    p, q = (np.exp(-((points - at) ** 2) / (2 * sigma**2)) for at in (shift, 0))
    exact = np.maximum(0, p / p.sum() - math.exp(epsilon) * q / q.sum()).sum()
    slack = accounting.rounding_slack(epsilon=epsilon, sigma=sigma, draws=1)
    assert exact <= accounting.gdp_delta(epsilon=epsilon, mu=shift / sigma) + slack
