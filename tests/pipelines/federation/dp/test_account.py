import math

import pytest
from blocks import DPSGD

from pipelines.blocks.dp import Dpsgd
from pipelines.federation.dp.account import Account
from pipelines.privacy import accounting
from pipelines.privacy.noise import OsEntropy, SeededForTests


def account(epsilon: float = 3.0, **changes) -> Account:
    return Account(epsilon, 1e-5, Dpsgd(**{**DPSGD, **changes}))


def cost(own: Account, steps: int) -> float:
    return accounting.schedule_epsilon(schedule=own.schedule(steps), delta=1e-5)


def test_the_plan_spends_the_budget_and_not_more():
    own = account()
    assert 2.9 < cost(own, 6) <= 3.0
    assert own.affordable == 6


def test_steps_that_planning_got_wrong_are_refused(monkeypatch):
    honest = accounting.noise_for
    monkeypatch.setattr(accounting, "noise_for", lambda **asked: 0.8 * honest(**asked))
    own = account()
    assert 0 < own.affordable < 6
    assert cost(own, own.affordable) <= 3 < cost(own, own.affordable + 1)


def test_a_noise_of_ones_own_buys_as_many_steps_as_it_buys():
    """dpfl.md 5.2: 268 steps of rate 0.05 at noise 2 cost 1.9986."""
    how = {"sampling_rate": 0.05, "noise_multiplier": 2.0, "rounds": 1000, "local_steps": 1}
    assert account(2.0, **how).affordable == 268
    assert account(2.0, **{**how, "rounds": 100}).affordable == 100


def test_steps_are_given_out_to_the_last_one_and_not_beyond():
    own = account(2.0, sampling_rate=0.05, noise_multiplier=2.0, rounds=300, local_steps=1)
    assert [own.take(100) for _ in range(4)] == [100, 100, 68, 0]
    assert own.steps == own.affordable


def test_no_epsilon_no_noise_and_no_guarantee():
    own = account(math.inf)
    assert own.noise_multiplier == 0 and own.affordable == 6
    assert own.statement(OsEntropy()).guarantee == "none"


def test_noise_of_ones_own_is_a_guarantee_even_where_none_was_asked():
    own = account(math.inf, noise_multiplier=2.0)
    statement = own.statement(OsEntropy(), steps=6)
    assert statement.guarantee == "formal" and 0 < statement.epsilon == pytest.approx(cost(own, 6))


def test_the_statement_says_what_was_spent():
    own = account()
    assert own.statement(OsEntropy()).epsilon == 0
    own.take(6)
    statement = own.statement(OsEntropy())
    assert 2.9 < statement.epsilon <= 3.0
    assert 0 < statement.details["epsilon_by_pld"] <= statement.epsilon
    assert statement.guarantee == "formal"
    assert own.statement(SeededForTests(0)).guarantee == "none"
