"""Tests ALI-DPFL's rules against brute force over the bounds that they minimise (dpfl.md 4.2, 4.3,
4.5).
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from blocks import DPSGD
from hypothesis import given
from hypothesis import strategies as st

from pipelines.config.dp import Dpsgd
from pipelines.federation.dp import local_steps
from pipelines.federation.dp.local_steps import Facts, following

GRID = np.linspace(1, 60, 200_000)
BASE = Facts(
    tau=3,
    steps_left=10**6,
    rounds_left=10,
    slope=0.7,
    loss_gap=0.02,
    spread=0.5,
    clients=10,
    size=1000,
    noise_multiplier=2.0,
    clipping_norm=0.1,
)


def settings(rule: str, **changes) -> Dpsgd:
    asked = {"rounds": 20, "noise_multiplier": 2.0, "local_steps_rule": rule, "expected_lot": 50.0}
    return Dpsgd(**{**DPSGD, **asked, **changes})


facts = st.builds(
    replace,
    st.just(BASE),
    slope=st.floats(0.2, 5),
    loss_gap=st.floats(0, 0.5),
    noise_multiplier=st.floats(0.1, 5),
    clipping_norm=st.floats(0.05, 2),
    tau=st.integers(1, 30),
)


@given(facts)
def test_the_printed_rule_minimises_the_printed_bound(own):
    """(20) with T = R tau: (tau - 1)^2 (2 + eta mu)(C^2 + D) + rest, over tau; eta mu = 2 / T and the rest held."""
    how = settings("paper")
    square, noise = own.clipping_norm**2, local_steps.noise_power(how, own)
    steps = own.tau * how.rounds
    rest = 4 / own.slope**2 + 3 * square + own.loss_gap * own.slope * steps + noise
    bound = ((2 + 2 / steps) * (square + noise) * (GRID - 1) ** 2 + rest) / GRID
    best = GRID[bound.argmin()]
    if best < 59:
        assert local_steps.paper(how, own) == pytest.approx(best, abs=1e-3)


@given(facts)
def test_mended_it_is_always_one_or_two_where_nothing_is_lost_between_clients(own):
    """The optimum lies in [1.22, 1.58] (dpfl.md 4.3)."""
    found = local_steps.paper_corrected(settings("paper_corrected"), replace(own, loss_gap=0.0))
    assert 1.2 < found < 1.59
    assert local_steps.paper(settings("paper"), own) > local_steps.paper_corrected(
        settings("paper_corrected"), own
    )


@given(own=facts, spread=st.floats(0, 5), distance=st.floats(0.1, 10))
def test_local_sgd_minimises_its_bound(own, spread, distance):
    own = replace(own, spread=spread)
    how = settings("local_sgd", prior_distance=distance, learning_rate=0.5, most_local_steps=60)
    noisy = own.clipping_norm**2 / 50 + local_steps.noise_power(how, own)
    differing = max(0.0, spread / (0.5 * own.tau) ** 2 - noisy * 0.9 / own.tau)
    drift = differing * (GRID - 1) * (2 * GRID - 1) / 6 + noisy * (GRID - 1) / 2
    bound = distance**2 / (0.5 * how.rounds * GRID) + 2 * own.slope * 0.25 * drift
    assert local_steps.local_sgd(how, own) == pytest.approx(GRID[bound.argmin()], abs=2e-3)


@pytest.mark.parametrize("rule", ["ratio", *local_steps.PROBING])
def test_no_rule_outruns_the_budget_or_its_bounds(rule):
    how = settings(rule, most_local_steps=7)
    for left, rounds in ((0, 5), (3, 10), (30, 10), (1000, 1), (5, 0)):
        tau = following(how, replace(BASE, steps_left=left, rounds_left=rounds))
        assert isinstance(tau, int) and 1 <= tau <= min(
            7, max(1, math.floor(left / max(1, rounds) + 0.5))
        )


def test_where_rounds_are_plenty_every_rule_says_one():
    """This is the case R_s >= R_c."""
    for rule in ("ratio", *local_steps.PROBING):
        assert following(settings(rule), replace(BASE, steps_left=50, rounds_left=60)) == 1


def test_fixed_is_fixed():
    assert following(settings("fixed", local_steps=4), replace(BASE, steps_left=0)) == 4


def test_ratio_spends_the_budget_in_the_rounds_that_are_left():
    left, taken = 267, []
    for rounds in range(40, 0, -1):
        tau = min(
            left, following(settings("ratio"), replace(BASE, steps_left=left, rounds_left=rounds))
        )
        taken.append(tau)
        left -= tau
    assert left == 0 and set(taken) <= {6, 7}


@pytest.mark.parametrize("rule", local_steps.PROBING)
def test_without_a_slope_a_rule_falls_back_on_the_ratio(rule):
    blind = replace(BASE, slope=math.nan, loss_gap=math.nan, spread=math.nan, steps_left=50)
    assert following(settings(rule), blind) == 5


@pytest.mark.parametrize("rule", local_steps.PROBING)
def test_one_client_alone_shows_no_slope(rule):
    """The largest budget outlives the others: its weights are the mean."""
    weights, slope = np.array([0.1, 0.2]), np.array([1.0, -1.0])
    seen = local_steps.measured([weights, weights], [0.3, 0.3], [slope, slope])
    assert following(settings(rule), replace(BASE, **seen, clients=1, steps_left=50)) == 5


@pytest.mark.parametrize("rule", local_steps.PROBING)
@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_model_that_diverges_leaves_the_ratio(rule, broken):
    weights, slope = [np.zeros(2), np.ones(2), np.full(2, 0.5)], np.array([1.0, -1.0])
    for losses, slopes in (
        ([broken, 1.0, broken], [slope] * 3),
        ([1.0] * 3, [slope, slope * broken, slope]),
    ):
        seen = local_steps.measured(weights, losses, slopes)
        assert following(settings(rule), Facts(tau=3, steps_left=50, rounds_left=10, **seen)) == 5


def test_what_is_measured_by_hand():
    weights = [np.array([1.0, 0.0]), np.array([-1.0, 0.0]), np.array([0.0, 0.0])]
    slopes = [np.array([2.0, 0.0]), np.array([0.0, 4.0]), np.array([0.0, 0.0])]
    found = local_steps.measured(weights, [1.0, 4.0, 2.0], slopes)
    assert found == pytest.approx({"slope": 3.0, "loss_gap": 0.5, "spread": 1.0}, rel=1e-5)
