"""Tests that PLD during a run equals PLD at the end, and is shared by clients with the same steps."""

import gc

import pytest

from pipelines.privacy.accounting import (
    NOTHING,
    Losses,
    Steps,
    gdp_epsilon,
    pld,
    schedule_epsilon,
    schedule_epsilon_pld,
)

DELTA = 1e-5
START, EARLY, LATE = Steps(1.4, 1.0, 1), Steps(2.0, 0.05, 7), Steps(1.1, 0.013, 30)


def after(*steps: Steps) -> Losses:
    state = NOTHING
    for each in steps:
        state = state.then(each)
    return state


@pytest.mark.parametrize(
    "schedule", [[EARLY], [LATE] * 5, [START, EARLY, LATE, EARLY, LATE], [LATE, EARLY, START]]
)
def test_each_figure_is_that_of_the_schedule_so_far(schedule):
    state = NOTHING
    for number, steps in enumerate(schedule, start=1):
        state = state.then(steps)
        so_far = schedule[:number]
        exact = schedule_epsilon_pld(schedule=so_far, delta=DELTA)
        assert exact * (1 - 1e-6) <= state.epsilon(DELTA) == pytest.approx(exact, rel=3e-3)
        assert state.epsilon(DELTA) < schedule_epsilon(schedule=so_far, delta=DELTA)


def test_a_figure_does_not_hang_on_when_others_were_asked_for():
    asked = after(START, EARLY)
    assert asked.epsilon(DELTA) > 0
    late = asked.then(LATE).then(EARLY).epsilon(DELTA)
    assert after(START, EARLY, LATE, EARLY).epsilon(DELTA) == late


def test_steps_without_sampling_cost_what_gaussian_dp_says():
    exact = gdp_epsilon(mu=4**0.5 / 3.0, delta=DELTA)
    found = NOTHING.then(Steps(3.0, 1.0, 4)).epsilon(DELTA)
    assert exact <= found == pytest.approx(exact, rel=1e-3)


def test_nothing_costs_nothing_and_no_steps_change_nothing():
    assert NOTHING.epsilon(DELTA) == 0.0
    assert NOTHING.then(EARLY._replace(count=0)) is NOTHING


def test_who_takes_the_same_steps_shares_the_next_state_and_nobody_keeps_it(monkeypatch):
    made = []
    monkeypatch.setattr(pld, "_of", lambda steps, real=pld._of: made.append(steps) or real(steps))
    rate = 0.0314  # of no other test
    mine, yours = (NOTHING.then(Steps(2.0, rate, 1)) for _ in range(2))
    assert mine is yours
    for _ in range(3):
        mine, yours = mine.then(Steps(2.0, rate, 1)), yours.then(Steps(2.0, rate, 1))
        assert mine.epsilon(DELTA) == yours.epsilon(DELTA)
    assert mine is yours and len(made) == 4
    assert mine.then(Steps(2.0, rate, 2)) is not mine.then(Steps(2.0, rate, 1))
    del mine, yours
    gc.collect()
    assert not [steps for steps in NOTHING._next if steps.sampling_rate == rate]


def test_thousands_of_steps_that_nobody_asked_about_are_composed_when_the_last_is(monkeypatch):
    """A run that continues after a kill does this.

    It takes again what it took, and asks only after the next round.
    """
    monkeypatch.setattr(pld, "_of", lambda steps: Counted(1))
    state = NOTHING
    for number in range(3000):
        state = state.then(Steps(1.0 + number, 0.5, 1))
    assert state.epsilon(DELTA) == 3000


class Counted(int):
    """Is a distribution that knows how many it was composed of."""

    def compose(self, other):
        return Counted(self + other)

    def get_epsilon_for_delta(self, delta):
        return int(self)
