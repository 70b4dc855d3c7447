"""Tests the Rényi curve against its definition (integrated), the spec's values, dp-accounting and
Opacus.
"""

import math

import numpy as np
import pytest
from dp_accounting.rdp import compute_epsilon, rdp_privacy_accountant
from hypothesis import example, given, settings
from hypothesis import strategies as st
from opacus.accountants.analysis import rdp as opacus_rdp

from pipelines.privacy import accounting
from pipelines.privacy.accounting import renyi

rho = accounting.sampled_gaussian_rdp
GRID = [
    (noise, rate)
    for noise in (0.5, 0.8, 1.1, 2.0, 4.0, 16.0, 60.0)
    for rate in (1e-4, 0.013, 0.05, 0.2, 0.5, 0.9, 1.0)
]


def integrated(noise: float, rate: float, order: float) -> float:
    """Integrates the definition: the order-th moment of the likelihood ratio of (1-q) N(0) + q N(1)
    over N(0).
    """
    grid = np.linspace(-30 * noise, order + 30 * noise, 400_001)
    log_ratio = np.logaddexp(np.log1p(-rate), np.log(rate) + (2 * grid - 1) / (2 * noise**2))
    log_density = -(grid**2) / (2 * noise**2) - np.log(noise * np.sqrt(2 * np.pi))
    logs = order * log_ratio + log_density
    top = logs.max()
    return (top + math.log(np.trapezoid(np.exp(logs - top), grid))) / (order - 1)


@pytest.mark.parametrize(
    "rate, noise, order, expected",
    [
        (0.013, 1.1, 2, 2.17172410e-4),
        (0.013, 1.1, 8, 1.03711755e-3),
        (0.013, 1.1, 32, 8.7402440613),
        (0.05, 2, 2, 7.09811566e-4),
        (0.05, 2, 8, 3.12152664e-3),
        (0.05, 2, 32, 0.916369610),
        (0.01, 4, 16, 5.20720970e-5),
        (1, 4, 16, 0.5),
    ],
)
def test_golden_values(rate, noise, order, expected):
    assert rho(noise_multiplier=noise, sampling_rate=rate, order=order) == pytest.approx(
        expected, rel=1e-8
    )


@pytest.mark.parametrize("noise, rate", GRID)
def test_integer_orders_are_dp_accounting_s_to_a_millionth(noise, rate):
    orders = [2, 3, 5, 8, 16, 32, 64]
    theirs = rdp_privacy_accountant._compute_rdp_poisson_subsampled_gaussian(rate, noise, orders)
    ours = [rho(noise_multiplier=noise, sampling_rate=rate, order=order) for order in orders]
    # theirs is a difference of logarithms near 1: below 1e-8 it has lost its digits
    assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-14)


@pytest.mark.parametrize("noise, rate", GRID)
def test_all_orders_are_opacus_to_a_millionth(noise, rate):
    orders = [1.1, 1.5, 2.5, 4.7, 10.9, 12, 33, 63]
    theirs = opacus_rdp.compute_rdp(q=rate, noise_multiplier=noise, steps=1, orders=orders)
    ours = [rho(noise_multiplier=noise, sampling_rate=rate, order=order) for order in orders]
    assert ours == pytest.approx(
        theirs, rel=1e-6, abs=1e-12
    )  # their series stops there; ours is nearer the integral


def test_fractional_orders_of_dp_accounting_are_safe_but_loose():
    """This is the evidence for a curve of our own.

    If it fails, the library was repaired, and renyi.py may go.
    """
    case = {"noise_multiplier": 1.1, "sampling_rate": 0.013, "order": 1.5}
    theirs = rdp_privacy_accountant._compute_rdp_poisson_subsampled_gaussian(0.013, 1.1, [1.5])[0]
    assert rho(**case) == pytest.approx(integrated(1.1, 0.013, 1.5), rel=1e-6)
    assert theirs > 1.03 * rho(**case)


@settings(deadline=None, max_examples=60)
@given(noise=st.floats(0.4, 20), rate=st.floats(1e-3, 0.95), order=st.floats(1.05, 40))
@example(noise=1.0, rate=0.5, order=1.999999999999993)  # the series' far terms fall on poles
def test_the_curve_is_the_integral_of_its_definition(noise, rate, order):
    expected = integrated(noise, rate, order)
    assert rho(noise_multiplier=noise, sampling_rate=rate, order=order) == pytest.approx(
        expected, rel=1e-5, abs=1e-11
    )


@pytest.mark.parametrize("order", [2, 3, 10, 40])
@pytest.mark.parametrize("steps", [1, 3, 10, 1000, 10**6, 10**9])
def test_orders_within_rounding_of_an_integer_cost_what_it_costs(order, steps):
    whole = rho(noise_multiplier=1.0, sampling_rate=0.1, order=order)
    for side in (-1, 1):
        near = order + side * steps * np.spacing(float(order))
        assert rho(noise_multiplier=1.0, sampling_rate=0.1, order=near) == pytest.approx(
            whole, rel=1e-5
        )


def test_arithmetic_that_fails_is_never_free(monkeypatch):
    monkeypatch.setattr(renyi, "_log_moment_fractional", lambda *_: math.nan)
    assert rho(noise_multiplier=1.234, sampling_rate=0.1, order=2.34567) == math.inf


@settings(deadline=None, max_examples=60)
@given(
    noise=st.floats(0.4, 20),
    rate=st.floats(1e-3, 0.9),
    order=st.floats(1.05, 60),
    more=st.floats(1.01, 3),
)
def test_rho_grows_with_the_order_and_the_rate_and_falls_with_the_noise(noise, rate, order, more):
    base = rho(noise_multiplier=noise, sampling_rate=rate, order=order)
    slack = 1e-9 * base + 1e-13
    assert rho(noise_multiplier=noise, sampling_rate=rate, order=order * more) >= base - slack
    assert (
        rho(noise_multiplier=noise, sampling_rate=min(1.0, rate * more), order=order)
        >= base - slack
    )
    assert rho(noise_multiplier=noise * more, sampling_rate=rate, order=order) <= base + slack


@pytest.mark.parametrize("order", [1.5, 2, 64])
def test_noise_without_a_square_among_floats_costs_next_to_nothing_and_raises_nothing(order):
    large = {"noise_multiplier": 1e200, "sampling_rate": 0.1, "order": order}
    assert 0 <= accounting.sampled_gaussian_rdp(**large) < 1e-200
    assert 0 <= accounting.sampled_gaussian_rdp(**{**large, "sampling_rate": 1}) < 1e-200
    assert (
        accounting.schedule_epsilon_gdp(schedule=[accounting.Steps(1e200, 1.0, 3)], delta=1e-5)
        == 0.0
    )


def test_edges():
    assert rho(noise_multiplier=1.0, sampling_rate=0, order=2) == 0
    assert rho(noise_multiplier=0, sampling_rate=0.1, order=2) == math.inf


@pytest.mark.parametrize("rdp", [1e-12, 0.003, 0.4, 5.0])
@pytest.mark.parametrize("order", [1.1, 2, 7.5, 64])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
def test_the_improved_conversion_is_dp_accounting_s(rdp, order, delta):
    ours = accounting.rdp_epsilon(rdp=rdp, order=order, delta=delta)
    assert ours == pytest.approx(compute_epsilon([order], [rdp], delta)[0], rel=1e-9, abs=1e-12)


def test_the_classic_conversion_is_never_tighter():
    for order in accounting.ORDERS:
        classic = renyi.classic_conversion(order=order, delta=1e-5)
        assert classic == pytest.approx(math.log(1e5) / (order - 1))
        assert classic > accounting.conversion(order=order, delta=1e-5)
