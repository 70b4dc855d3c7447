"""Calibrated noise and steps stay within a budget and leave next to nothing of it."""

from functools import partial

import pytest

from pipelines.privacy import accounting
from pipelines.privacy.accounting import Steps, renyi

DELTA = 1e-5
classic = partial(
    accounting.schedule_epsilon, convert=renyi.classic_conversion, orders=range(2, 65)
)


@pytest.mark.parametrize(
    "noise, by_classic, improved",
    [
        (1.0, 189, 454),
        (1.1, 451, 774),
        (2, 3186, 4363),
        (3, 7921, 10761),
        (4, 14550, 19726),
        (6, 33495, 45347),
    ],
)
def test_steps_for_a_noise_golden_values(noise, by_classic, improved):
    asked = {"epsilon": 2.0, "delta": DELTA, "sampling_rate": 0.013, "noise_multiplier": noise}
    assert accounting.steps_for(**asked) == improved
    assert accounting.steps_for(**asked, by=classic) == by_classic
    assert accounting.steps_for(**asked, at_most=100) == 100


def test_the_first_step_that_a_budget_refuses():
    """dpfl.md 6.4: 267 steps are accepted at q = 0.05, z = 2, epsilon 2 with the table's 268 costing 1.9986."""
    asked = {"epsilon": 2.0, "delta": DELTA, "sampling_rate": 0.05, "noise_multiplier": 2.0}
    most = accounting.steps_for(**asked)
    spent = [
        accounting.schedule_epsilon(schedule=[Steps(2.0, 0.05, count)], delta=DELTA)
        for count in (most, most + 1)
    ]
    assert spent[0] <= 2.0 < spent[1]
    assert most in (267, 268)


@pytest.mark.parametrize(
    "epsilon, by",
    [
        *((epsilon, accounting.schedule_epsilon) for epsilon in (0.5, 1.0, 10.0)),
        (3.0, accounting.schedule_epsilon_pld),
    ],
)
def test_calibrated_noise_never_overshoots_and_is_nearly_the_least(epsilon, by):
    noise = accounting.scale_for(
        epsilon=epsilon, delta=DELTA, schedule=(Steps(1.0, 0.2, 60),), by=by
    )
    assert by(schedule=[Steps(noise, 0.2, 60)], delta=DELTA) <= epsilon
    assert by(schedule=[Steps(noise * (1 - 1e-4), 0.2, 60)], delta=DELTA) > epsilon


def test_loss_distributions_need_less_noise_than_renyi():
    plan = {"epsilon": 3.0, "delta": DELTA, "schedule": (Steps(1.0, 0.2, 60),)}
    assert accounting.scale_for(**plan, by=accounting.schedule_epsilon_pld) < accounting.scale_for(
        **plan
    )


@pytest.mark.parametrize("by", [accounting.schedule_epsilon, accounting.schedule_epsilon_gdp])
def test_the_scale_of_a_schedule_is_the_least_that_fits_what_came_before(by):
    before, schedule = (Steps(1.2, 1.0, 1),), (Steps(1.0, 1.0, 4), Steps(0.5, 1.0, 3))
    scale = accounting.scale_for(epsilon=6.0, delta=DELTA, schedule=schedule, before=before, by=by)
    spent = [
        by(
            schedule=[
                *before,
                *(s._replace(noise_multiplier=f * scale * s.noise_multiplier) for s in schedule),
            ],
            delta=DELTA,
        )
        for f in (1.0, 1 - 1e-5)
    ]
    assert spent[0] <= 6.0 < spent[1]
