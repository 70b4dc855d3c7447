"""Schedules against the spec's table, Opacus on heterogeneous noise and dp-accounting; monotonicity."""

import math
from functools import partial

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, pld
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants import PRVAccountant, RDPAccountant

from pipelines.privacy import accounting
from pipelines.privacy.accounting import Steps, renyi, schedules

DELTA = 1e-5
classic = partial(
    accounting.schedule_epsilon, convert=renyi.classic_conversion, orders=range(2, 65)
)
TABLE = [  # dpfl.md 5.2: schedule, RDP classic, RDP improved, Opacus' PRV, PLD
    ([Steps(1.0, 0.013, 189)], 1.9983, 1.5677, 1.179, 1.169),
    ([Steps(1.1, 0.013, 451)], 1.9994, 1.6036, 1.38, 1.369),
    ([Steps(4.0, 0.013, 14550)], 1.9999, 1.6934, 1.563, 1.554),
    ([Steps(2.0, 0.05, 268)], 2.3630, 1.9986, 1.828, 1.818),
    ([Steps(noise, 0.013, 2000) for noise in (6, 5, 4, 3)], 1.4526, 1.2053, 1.113, 1.103),
    ([Steps(6 * 0.93**i, 0.013, 2000) for i in range(10)], 2.278, 1.940, 1.793, 1.783),
    ([Steps(6 * 0.993**i, 0.013, 200) for i in range(100)], 2.324, 1.983, 1.832, 1.822),
]


def digits(printed: float) -> float:
    """Returns half a unit of the last digit that the table prints."""
    return 0.5001 * 10.0 ** -len(str(printed).partition(".")[2])


@pytest.mark.parametrize("schedule, by_classic, improved, by_prv, by_pld", TABLE)
def test_golden_schedules(schedule, by_classic, improved, by_prv, by_pld):
    assert classic(schedule=schedule, delta=DELTA) == pytest.approx(
        by_classic, abs=max(5e-4, digits(by_classic))
    )
    assert accounting.schedule_epsilon(schedule=schedule, delta=DELTA) == pytest.approx(
        improved, abs=5.01e-4
    )
    assert accounting.schedule_epsilon_pld(schedule=schedule, delta=DELTA) == pytest.approx(
        by_pld, abs=6e-4
    )
    if len(schedule) == 1:  # PRV's upper end is its error, 0.01, above the figure itself
        noise, rate, steps = schedule[0]
        opacus = PRVAccountant()
        opacus.history = [(noise, rate, steps)]
        assert opacus.get_epsilon(DELTA) == pytest.approx(by_prv, abs=6e-4)
    assert 0.005 < by_prv - accounting.schedule_epsilon_pld(schedule=schedule, delta=DELTA) < 0.015


@pytest.mark.parametrize("schedule", [row[0] for row in TABLE[:6]])
def test_heterogeneous_schedules_are_opacus_to_a_millionth(schedule):
    theirs = RDPAccountant()
    theirs.history = [tuple(steps) for steps in schedule]
    expected = theirs.get_epsilon(DELTA)
    assert accounting.schedule_epsilon(
        schedule=schedule, delta=DELTA, orders=theirs.DEFAULT_ALPHAS
    ) == pytest.approx(expected, rel=1e-6)
    assert accounting.schedule_epsilon(schedule=schedule, delta=DELTA) <= expected * (1 + 1e-9)


def test_pld_of_a_schedule_is_dp_accounting_s_step_by_step():
    schedule = [Steps(1.5, 0.1, 2), Steps(1.0, 0.05, 3), Steps(1.5, 0.1, 1), Steps(2.0, 1.0, 1)]
    theirs = pld.PLDAccountant()
    for noise, rate, count in schedule:
        for _ in range(count):
            theirs.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)))
    expected = theirs.get_epsilon(DELTA)
    assert accounting.schedule_epsilon_pld(schedule=schedule, delta=DELTA) == pytest.approx(
        expected, rel=1e-6
    )


def test_rounded_noise_is_an_upper_bound_close_to_the_exact_one():
    schedule = [Steps(6 * 0.98**i, 0.05, 20) for i in range(40)]
    exact = accounting.schedule_epsilon_pld(schedule=schedule, delta=DELTA)
    rounded = accounting.schedule_epsilon_pld(schedule=schedule, delta=DELTA, levels=8)
    assert exact < rounded < 1.2 * exact
    coarse = schedules._coarser(schedule, 8)
    assert len(coarse) <= 8 and sum(steps.count for steps in coarse) == 800


@settings(deadline=None, max_examples=40)
@given(
    noise=st.floats(0.5, 8),
    rate=st.floats(0.002, 0.8),
    steps=st.integers(1, 5000),
    more=st.floats(1.01, 2),
)
def test_epsilon_grows_with_steps_and_rate_and_falls_with_noise_and_delta(noise, rate, steps, more):
    def spent(noise=noise, rate=rate, steps=steps, delta=DELTA):
        return accounting.schedule_epsilon(schedule=[Steps(noise, rate, steps)], delta=delta)

    base = spent() - 1e-9
    assert spent(steps=math.ceil(steps * more)) >= base
    assert spent(rate=min(1.0, rate * more)) >= base
    assert spent(noise=noise / more) >= base
    assert spent(delta=DELTA / more) >= base


@settings(deadline=None, max_examples=30)
@given(
    noises=st.lists(st.floats(0.5, 50), min_size=1, max_size=5), order=st.sampled_from([2, 3.5, 16])
)
def test_several_releases_of_one_full_lot_cost_the_sum_of_their_curves(noises, order):
    """At rate 1 sampling plays no part: one step of the joint noise is the steps one by one."""
    together = accounting.schedule_rdp(
        schedule=[Steps(accounting.on_one_lot(noise_multipliers=noises), 1.0, 1)], order=order
    )
    one_by_one = accounting.schedule_rdp(
        schedule=[Steps(noise, 1.0, 1) for noise in noises], order=order
    )
    assert together == pytest.approx(one_by_one, rel=1e-9)


def test_several_releases_of_one_sampled_lot_cost_more_than_lots_of_their_own():
    joint = accounting.on_one_lot(noise_multipliers=[1.0, 1.0])
    shared = accounting.schedule_epsilon(schedule=[Steps(joint, 0.1, 20)], delta=DELTA)
    assert shared > accounting.schedule_epsilon(schedule=[Steps(1.0, 0.1, 40)], delta=DELTA)


def test_edges_no_step_is_free_and_no_noise_is_infinite():
    for by in (accounting.schedule_epsilon, accounting.schedule_epsilon_pld):
        assert by(schedule=[Steps(1.0, 0.1, 0)], delta=DELTA) == 0
        assert by(schedule=[Steps(0.0, 0.1, 1)], delta=DELTA) == math.inf
    assert accounting.scale_for(epsilon=math.inf, delta=DELTA, schedule=(Steps(1.0, 0.1, 10),)) == 0


def test_a_gaussian_release_is_a_step_of_rate_one():
    """Gaussian DP is exact here, and RDP and PLD are close to it from above."""
    schedule = [Steps(1.5, 1.0, 1), Steps(4.0, 1.0, 10)]
    exact = accounting.schedule_epsilon_gdp(schedule=schedule, delta=DELTA)
    mu = math.sqrt(1 / 1.5**2 + 10 / 16)
    assert exact == pytest.approx(accounting.gdp_epsilon(mu=mu, delta=DELTA), rel=1e-12)
    assert exact < accounting.schedule_epsilon(schedule=schedule, delta=DELTA) < 1.2 * exact
    assert accounting.schedule_epsilon_pld(schedule=schedule, delta=DELTA) == pytest.approx(
        exact, rel=1e-3
    )
    assert accounting.schedule_epsilon_gdp(schedule=[Steps(0.0, 1.0, 1)], delta=DELTA) == math.inf
    with pytest.raises(ValueError, match="without sampling"):
        accounting.schedule_epsilon_gdp(schedule=[Steps(1.0, 0.5, 1)], delta=DELTA)
