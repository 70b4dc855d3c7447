"""Tests how a budget becomes noise.

The whole delta is used, the lattice changes no sensitivity, and noise is really added.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from pipelines.privacy import accounting
from pipelines.privacy.discrete_gaussian import (
    FINEST,
    SLACK_SHARE,
    Budget,
    count_on_lattice,
    lattice_scale,
    on_lattice,
    release,
)


@settings(deadline=None, max_examples=80)
@given(
    epsilon=st.floats(0.05, 100),
    delta=st.floats(1e-9, 1e-2),
    draws=st.integers(1, 10**6),
    sigma=st.floats(1e-2, 1e4),
)
def test_continuous_delta_and_lattice_slack_together_stay_within_delta(
    epsilon, delta, draws, sigma
):
    budget = Budget(epsilon, delta)
    scale = lattice_scale(budget, sigma=sigma, draws=draws)
    continuous = accounting.gdp_delta(
        epsilon=min(epsilon, accounting.LARGEST_EPSILON), mu=budget.mu
    )
    largest = {"epsilon": accounting.LARGEST_EPSILON, "draws": draws}  # a total may be that large
    slack = accounting.rounding_slack(sigma=sigma * scale, **largest)
    assert continuous + slack <= delta * (1 + 1e-7)
    assert math.log2(scale).is_integer()
    if scale > 1:  # the least power of two that does
        coarser = accounting.rounding_slack(sigma=sigma * scale / 2, **largest)
        assert continuous + coarser > delta


def test_nothing_fails_by_how_many_rows_there_are():
    """A sum beyond 64 bits is that sum modulo 2^64, with noise or without: whether a release came tells no number."""
    rows, noise = on_lattice(np.full((5, 1), 1.0), 2**62), np.array([7])
    with np.errstate(over="raise"):
        assert int((rows.sum(0) + noise)[0]) == (5 * 2**62 + 7 + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("records", [0, 1, 2**18 - 1, 2**18, 2**18 + 1, 2**19 + 3])
def test_a_number_of_records_wraps_and_stays_an_int64(records):
    total = count_on_lattice(records, FINEST)
    assert total.dtype == np.int64
    assert int(total[0]) == (records * FINEST + 2**63) % 2**64 - 2**63


def test_a_delta_next_to_nothing_finds_no_lattice_and_raises_nothing():
    assert lattice_scale(Budget(10.0, 1e-320), sigma=1.0, draws=100) > FINEST


def test_budget_gives_away_only_a_thousandth_of_delta():
    assert accounting.gdp_epsilon(mu=Budget(1.0, 1e-5).mu, delta=1e-5) == pytest.approx(
        1.0, abs=1e-3
    )
    assert Budget(1.0, 1e-5).mu < accounting.gdp_mu(epsilon=1.0, delta=1e-5)


def test_infinite_budget_is_the_named_non_private_mode():
    budget = Budget(math.inf, 1e-5)
    assert not budget.private and budget.mu == math.inf
    assert Budget(1e9, 1e-5).private
    assert lattice_scale(budget, sigma=1.0, draws=10) == 2**20


@settings(deadline=None, max_examples=80)
@given(
    values=npst.arrays(
        np.float64, npst.array_shapes(max_dims=2, max_side=6), elements=st.floats(-1, 1)
    ),
    scale=st.sampled_from([1, 2, 2**10, 2**26]),
)
def test_the_lattice_never_lengthens_a_contribution(values, scale):
    cut = on_lattice(values, scale)
    assert cut.dtype == np.int64
    assert np.all(np.abs(cut) <= np.abs(values) * scale)
    assert np.all(np.abs(cut - values * scale) < 1)


def test_release_is_the_sum_plus_noise_in_original_units(noise_spy):
    total = np.array([[64, -128], [0, 32]], np.int64)
    noisy = release(total, sigma=0.5, scale=64, noise=noise_spy)
    assert noise_spy.calls == [((2, 2), 32.0)]
    np.testing.assert_array_equal(noisy, [[1, -2], [0, 0.5]])


def test_release_without_sigma_asks_for_no_noise(noise_spy):
    np.testing.assert_array_equal(
        release(np.array([8]), sigma=0.0, scale=8, noise=noise_spy), [1.0]
    )
    assert noise_spy.calls == []


@pytest.mark.parametrize("lattices", [1, 2, 3])
def test_several_lattices_share_the_slack(lattices):
    """At many deltas, for a lattice is rounded to a power of two, which hides a factor at one."""
    for delta in np.geomspace(1e-6, 1e-4, 30):
        budget = Budget(5.0, delta, lattices=lattices)
        scale = lattice_scale(budget, sigma=1.3, draws=1000)
        slack = accounting.rounding_slack(
            epsilon=accounting.LARGEST_EPSILON, sigma=1.3 * scale, draws=1000
        )
        assert lattices * slack <= SLACK_SHARE * delta
