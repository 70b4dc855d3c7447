"""Tests noise by a plan: what it costs, and that no server changes it."""

import pytest
from blocks import DPSGD

from pipelines.config.dp import Dpsgd
from pipelines.federation.algorithms.dpsgd import new_account as account
from pipelines.federation.dp.noise_schedule import Scheduled
from pipelines.privacy import accounting
from pipelines.privacy.accounting import Steps
from pipelines.privacy.noise import OsEntropy

PLAN = {"noise_control": "scheduled", "noise_decay": 0.9, "rounds": 6, "local_steps": 2}


def scheduled(epsilon: float = 3.0, **changes) -> Scheduled:
    own = account(epsilon, 1e-5, Dpsgd(**{**DPSGD, **PLAN, **changes}))
    assert isinstance(own, Scheduled)
    return own


def test_the_plan_spends_the_budget_and_is_costed_step_by_step():
    own = scheduled()
    by_hand = [Steps(own.first * 0.9 ** (step // 2), 0.3, 1) for step in range(12)]
    assert own.claim == pytest.approx(
        accounting.schedule_epsilon(schedule=by_hand, delta=1e-5), rel=1e-9
    )
    assert 2.99 < own.claim <= 3.0 and own.affordable == 12


def test_without_decay_it_is_the_constant_account():
    constant = account(3.0, 1e-5, Dpsgd(**{**DPSGD, **PLAN, "noise_control": "const"}))
    assert scheduled(noise_decay=1.0).first == pytest.approx(constant.first, rel=1e-6)


@pytest.mark.parametrize("asked, factor", [(2, 1.0), (1, 0.01), (100, 5.0)])
def test_the_noise_of_a_step_follows_from_how_many_came_before_whatever_is_asked(asked, factor):
    own, seen = scheduled(), []
    while taken := own.take(asked, factor):
        seen += [own.noise_multiplier] * taken
    assert seen == pytest.approx([own.first * 0.9 ** (step // 2) for step in range(12)])
    assert own.epsilon_spent == pytest.approx(own.claim)
    assert own.steps == 12


def test_noise_of_ones_own_buys_a_prefix_of_the_plan():
    own = scheduled(noise_multiplier=2.0, rounds=100)
    assert 0 < own.affordable < 200
    more = accounting.schedule_epsilon(schedule=own.scheduled(2.0, own.affordable + 1), delta=1e-5)
    assert own.claim <= 3.0 < more


def test_its_ledger_entry_composes_to_the_figure_of_its_statement():
    own = scheduled()
    pld = own.statement(OsEntropy()).details["epsilon_by_pld_as_planned"]
    assert accounting.total_epsilon(costs=[own.cost], delta=1e-5) == pytest.approx(pld)
    assert pld < own.claim
