"""Tests that our privacy loss distributions are dp-accounting's, and never too small."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent, pld
from dp_accounting.pld import privacy_loss_distribution as theirs
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipelines.privacy.accounting import gdp_delta, loss_distributions
from pipelines.privacy.accounting.loss_distributions import (
    sampled_epsilon,
    sampled_gaussian,
    self_composed,
)

DELTA = 1e-5
# The largest absolute difference that counts as equal.
EQUAL = 1e-12
# Steps that are like a client's, the same without sampling, and the ends of what is of use.
CASES = [
    (1.6, 0.05, 1e-3),
    (1.6, 1.0, 2e-3),
    (1.6, 0.2, 2e-3),
    (0.05, 0.3, 0.5),
    (0.2, 1e-6, 1e-2),
    (300.0, 0.01, 1e-4),
    (1e6, 0.5, 1e-3),
    (1e6, 1.0, 1e-3),
    (1.2, 1 - 1e-9, 1e-2),
    # ln(1 - q) is a point of the lattice.
    (2.0, 1 - math.exp(-0.2), 1e-3),
]


def library_s(noise: float, rate: float, interval: float):
    return theirs.from_gaussian_mechanism(
        noise, sampling_prob=rate, value_discretization_interval=interval
    )


def ours(noise: float, rate: float, interval: float):
    return sampled_gaussian(noise_multiplier=noise, sampling_rate=rate, interval=interval)


def assert_equal(found, expected):
    assert found._symmetric == expected._symmetric
    directions = [
        (found._pmf_remove, expected._pmf_remove),
        (found._pmf_add, expected._pmf_add),
    ]
    for law, library_law in directions:
        assert type(law) is type(library_law)
        assert law._pessimistic_estimate and library_law._pessimistic_estimate
        assert law._infinity_mass == pytest.approx(library_law._infinity_mass, rel=1e-6, abs=0)
        law = law.to_dense_pmf()
        library_law = library_law.to_dense_pmf()
        assert law._discretization == library_law._discretization
        assert law._lower_loss == library_law._lower_loss
        assert law.size == library_law.size
        assert np.abs(law._probs - library_law._probs).max() <= EQUAL


@pytest.mark.parametrize("noise, rate, interval", CASES)
def test_a_step_s_distribution_is_dp_accounting_s(noise, rate, interval):
    assert_equal(ours(noise, rate, interval), library_s(noise, rate, interval))


@settings(deadline=None, max_examples=60)
@given(
    noise=st.floats(-1.5, 6).map(lambda power: 10**power),
    rate=st.one_of(st.just(1.0), st.floats(-8, 0).map(lambda power: 10**power)),
    interval=st.floats(-4, 0).map(lambda power: 10**power),
    count=st.integers(1, 50),
)
def test_any_step_s_distribution_and_epsilon_are_dp_accounting_s(noise, rate, interval, count):
    # The library loops over the lattice, at microseconds a point.
    assume((22 / noise + 1 / noise**2) / interval < 20_000)
    found = ours(noise, rate, interval)
    expected = library_s(noise, rate, interval)
    assert_equal(found, expected)
    after = self_composed(found, count).get_epsilon_for_delta(DELTA)
    library_after = expected.self_compose(count).get_epsilon_for_delta(DELTA)
    assert after == pytest.approx(library_after, abs=EQUAL, rel=EQUAL)


@pytest.mark.parametrize("noise, rate, interval", CASES)
def test_steps_together_are_dp_accounting_s(noise, rate, interval):
    found = ours(noise, rate, interval)
    expected = library_s(noise, rate, interval)
    # The lattice of thousands of steps with little noise fills the memory.
    for count in (1, 2, 7, 3000 if noise > 1 else 8):
        assert_equal(self_composed(found, count), expected.self_compose(count))


@pytest.mark.parametrize("mu", [0.0, 0.4])
def test_the_epsilon_of_a_schedule_is_the_library_accountant_s(mu):
    schedule = ((1.7, 0.1, 2), (1.3, 0.05, 1), (2.0, 1.0, 3), (1.5, 0.0, 4))
    accountant = pld.PLDAccountant()
    if mu:
        accountant.compose(GaussianDpEvent(1 / mu))
    for noise, rate, count in schedule:
        step = PoissonSampledDpEvent(rate, GaussianDpEvent(noise))
        accountant.compose(SelfComposedDpEvent(step, count))
    found = sampled_epsilon(schedule=schedule, delta=DELTA, mu=mu)
    assert found == pytest.approx(accountant.get_epsilon(DELTA), abs=EQUAL, rel=0)


def test_steps_without_noise_have_no_finite_epsilon():
    assert sampled_epsilon(schedule=((1.5, 0.1, 2), (0.0, 0.1, 1)), delta=DELTA) == math.inf
    assert sampled_epsilon(schedule=((0.0, 0.0, 1),), delta=DELTA) == 0.0


@pytest.mark.parametrize("noise, rate, interval", [(1.6, 0.05, 1e-3), (1.1, 0.3, 0.1), (2, 1, 0.1)])
def test_no_direction_s_delta_is_below_the_exact_one(noise, rate, interval):
    """A loss that is rounded down makes delta too small, at and between the lattice's points."""
    distribution = ours(noise, rate, interval)
    for epsilon in np.arange(0.25, 12.0, 0.25) * interval:
        added = distribution._pmf_add.get_delta_for_epsilon(epsilon)
        removed = distribution._pmf_remove.get_delta_for_epsilon(epsilon)
        assert exact_removed(noise, rate, epsilon) - 1e-14 <= removed
        assert exact_added(noise, rate, epsilon) - 1e-14 <= added
        assert removed <= exact_removed(noise, rate, epsilon - interval)


def exact_removed(noise: float, rate: float, epsilon: float) -> float:
    """Returns delta of (1 - q) N(0, z^2) + q N(1, z^2) against N(0, z^2), in closed form."""
    if epsilon <= 0:
        # With so small an epsilon any delta is of use to the test.
        return 1.0
    unsampled = math.log1p(math.expm1(epsilon) / rate)
    return rate * gdp_delta(epsilon=unsampled, mu=1 / noise)


def exact_added(noise: float, rate: float, epsilon: float) -> float:
    """Returns delta of N(0, z^2) against (1 - q) N(0, z^2) + q N(1, z^2), in closed form."""
    share = 1 - (1 - rate) * math.exp(epsilon)
    if share <= 0:
        return 0.0
    return share * gdp_delta(epsilon=math.log(rate) + epsilon - math.log(share), mu=1 / noise)


def test_clients_with_equal_budgets_share_one_computation(monkeypatch):
    made = []
    real = loss_distributions.sampled_gaussian

    def counted(**step):
        made.append(step)
        return real(**step)

    monkeypatch.setattr(loss_distributions, "sampled_gaussian", counted)
    # These steps are of no other test.
    schedule = ((31.4, 0.1, 2), (31.3, 0.1, 1))
    assert sampled_epsilon(schedule=schedule, delta=DELTA) == sampled_epsilon(
        schedule=schedule, delta=DELTA
    )
    assert len(made) == 2


def test_a_curve_that_rises_is_an_error(monkeypatch):
    """Noise beyond any use must not yield a distribution of nothing."""
    monkeypatch.setattr(
        loss_distributions, "_deltas", lambda loss, is_add, epsilons: epsilons * np.nan
    )
    with pytest.raises(ValueError, match="has no curve"):
        ours(1.6, 0.05, 1e-2)
