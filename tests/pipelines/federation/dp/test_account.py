import math

import pytest
from blocks import DPSGD
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.config.dp import Dpsgd
from pipelines.federation.algorithms import dpsgd
from pipelines.federation.dp.filtered_account import Filtered
from pipelines.federation.dp.local_steps import Facts, following
from pipelines.privacy import accounting
from pipelines.privacy.noise import OsEntropy, SeededForTests


def account(epsilon: float = 3.0, **changes):
    return dpsgd.new_account(epsilon, 1e-5, Dpsgd(**{**DPSGD, **changes}))


def cost(own, steps: int) -> float:
    schedule = [accounting.Steps(own.first, own.settings.sampling_rate, steps)]
    return accounting.schedule_epsilon(schedule=schedule, delta=1e-5)


def test_the_plan_spends_the_budget_and_not_more():
    own = account()
    assert 2.9 < cost(own, 6) <= 3.0
    assert own.affordable == 6


def test_steps_that_planning_got_wrong_are_refused(monkeypatch):
    honest = accounting.scale_for
    monkeypatch.setattr(accounting, "scale_for", lambda **asked: 0.8 * honest(**asked))
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
    statement = own.statement(OsEntropy())
    assert statement.guarantee == "formal" and 0 < statement.epsilon == pytest.approx(cost(own, 6))


def test_the_statement_says_what_the_whole_run_costs_and_spent_what_was():
    own = account()
    statement = own.statement(OsEntropy())
    assert 2.9 < statement.epsilon <= 3.0 and statement.epsilon == cost(own, 6)
    assert 0 < statement.details["epsilon_by_pld_as_planned"] <= statement.epsilon
    assert (
        statement.guarantee == "formal"
        and account().statement(SeededForTests(0)).guarantee == "none"
    )
    assert own.epsilon_spent == 0
    own.take(2)
    spent = own.spent()
    assert (
        spent["steps"] == 2
        and 0 < spent["epsilon_by_pld"] < spent["epsilon_spent"] < statement.epsilon
    )
    own.take(4)
    assert own.epsilon_spent == pytest.approx(statement.epsilon)
    assert accounting.total_epsilon(costs=[own.cost], delta=1e-5) == pytest.approx(
        statement.details["epsilon_by_pld_as_planned"]
    )


NOISE_FALLS = {"noise_control": "plateau"}
CONTROLLED = {
    "noise_control": "falling_loss",
    "sampling_rate": 0.05,
    "noise_multiplier": 2.0,
    "local_steps": 10,
}


@given(factors=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
@settings(max_examples=30, deadline=None)
def test_no_server_can_make_a_filtered_client_overspend(factors):
    """For any request, the curve at the filter's order stays within what makes epsilon."""
    own = account(2.0, **CONTROLLED, rounds=100)
    assert isinstance(own, Filtered)
    for factor in factors:
        before, taken = own.steps, own.take(10, factor)
        assert own.steps == before + taken <= before + 10
        assert own.noise_multiplier == max(2.0 * factor, 0.5)
    order = own.filter.order
    spent = accounting.schedule_rdp(schedule=own.taken, order=order)
    assert accounting.rdp_epsilon(rdp=spent, order=order, delta=1e-5) <= 2.0
    assert sum(steps.count for steps in own.taken) == own.steps


def test_a_filter_takes_nearly_all_steps_of_a_constant_run_and_then_none():
    """dpfl.md 6.4: one order may refuse a few that the least over orders lets pass."""
    own = account(2.0, **{**CONTROLLED, "rounds": 30})
    taken = [own.take(10) for _ in range(30)]
    assert 260 <= sum(taken) <= 268 and taken[-1] == 0
    assert own.affordable == sum(taken)
    assert own.epsilon_spent <= 2.0 < own.epsilon_spent + cost(own, 10)


@pytest.mark.parametrize(
    "control", [{}, {"noise_control": "scheduled", "noise_decay": 0.8}, CONTROLLED]
)
def test_pld_on_the_way_is_an_upper_bound_close_to_pld_of_what_was_taken(control):
    settings, images = Dpsgd(**{**DPSGD, **control, "rounds": 12}), accounting.Steps(2.5, 1.0, 1)
    own, figures = dpsgd.new_account(4.0, 1e-5, settings, (images,)), []
    for number in range(6):
        own.take(3, 0.93**number)
        exact = accounting.schedule_epsilon_pld(schedule=own.taken, delta=1e-5)
        figures.append(own.running["epsilon_by_pld"])
        assert exact * (1 - 1e-6) <= figures[-1] <= 1.02 * exact
        assert own.running["epsilon_spent"] == own.epsilon_spent
    assert figures == sorted(figures) and figures[0] < figures[-1]


def test_what_is_left_is_counted_at_the_noise_that_is_left():
    own = account(2.0, **CONTROLLED, rounds=100)
    assert own.left == own.affordable
    own.take(10, 0.7)
    left = own.left
    assert left < 0.6 * (own.affordable - 10)
    assert own.take(10**6, 0.7) == left and own.left == 0


def test_a_rule_that_follows_falling_noise_lasts_for_all_its_rounds():
    own = account(2.0, **CONTROLLED, rounds=40, local_steps_rule="ratio")
    for number in range(40):
        facts = Facts(tau=1, steps_left=own.left, rounds_left=40 - number)
        assert own.take(following(own.settings, facts), 0.99**number), f"round {number}"
    assert own.epsilon_spent > 1.9


def test_what_was_spent_is_figured_without_the_curve_of_every_noise(monkeypatch):
    """A run of ten thousand noises would take minutes and a gigabyte, after its last round."""
    own, asked = account(2.0, **CONTROLLED, rounds=100), []
    for number in range(5):
        own.take(1, 0.9**number)
    monkeypatch.setattr(accounting, "schedule_epsilon", lambda **given: asked.append(given) or 0.0)
    assert 0 < own.spent()["epsilon_by_pld"] < own.epsilon_spent and not asked


def test_a_filtered_run_claims_its_whole_budget():
    own = account(2.0, **CONTROLLED, rounds=5)
    statement = own.statement(OsEntropy())
    assert statement.epsilon == 2.0 and "filter at order" in statement.accountant
    assert own.cost["kind"] == "renyi"
    assert accounting.total_epsilon(costs=[own.cost], delta=1e-5) == pytest.approx(2.0)
    own.take(10, 0.9)
    own.take(10, 0.8)
    spent = own.spent()
    assert (
        10 < spent["steps"] == own.steps
        and 0 < spent["epsilon_by_pld"] < spent["epsilon_spent"] < 2.0
    )


@pytest.mark.parametrize("epsilon", [0.005, 0.2])
def test_a_filter_that_affords_nothing_costs_nothing_and_gives_nothing(epsilon):
    """At 0.005 the conversion alone exceeds epsilon: a budget below zero, which must not lower a ledger's total."""
    own = account(epsilon, **CONTROLLED, rounds=5)
    assert own.affordable == 0 and own.claim == 0.0 and own.cost["rdp"] == 0.0
    assert own.take(1, 1e6) == 0 and own.steps == 0, "not at any noise that a server asks for"


def test_less_noise_buys_fewer_steps():
    counts = []
    for factor in (1.0, 0.7):
        own = account(2.0, **CONTROLLED, rounds=100)
        counts.append(sum(own.take(10, factor) for _ in range(100)))
    assert counts[1] < 0.6 * counts[0]


def test_a_first_noise_below_the_least_is_not_raised():
    own = account(8.0, **{**CONTROLLED, "noise_multiplier": 0.4}, rounds=2)
    own.take(1, 0.1)
    assert own.noise_multiplier == 0.4


@pytest.mark.parametrize("changes", [{}, {**CONTROLLED, "rounds": 5}])
@pytest.mark.parametrize("asked", [-5, 0])
def test_no_server_gives_steps_back(changes, asked):
    own = account(2.0, **changes)
    own.take(1)
    assert own.take(asked) == 0 and own.steps == 1


@pytest.mark.parametrize("factor", [math.nan, 0.0, -1.0, 1e-300])
def test_no_factor_buys_steps_without_noise(factor):
    own = account(2.0, **{**CONTROLLED, "noise_least": 1e-9}, rounds=5)
    assert own.take(1, factor) == 0 and own.steps == 0


def test_a_rule_plans_with_the_most_steps_it_may_ask_for():
    own = account(
        2.0, **{**CONTROLLED, "noise_control": "const"}, rounds=40, local_steps_rule="ratio"
    )
    assert own.affordable == 268 and own.left == 268
    own.take(100)
    assert own.left == 168


@pytest.mark.parametrize("rounds", [30, 100, 1000])
def test_a_filter_is_set_for_the_steps_that_can_be_had_however_many_were_asked_for(rounds):
    own = account(2.0, **CONTROLLED, rounds=rounds)
    assert 260 <= own.affordable <= 268
    assert sum(own.take(10) for _ in range(30)) == own.affordable


@pytest.mark.parametrize("changes", [{"noise_multiplier": 2.0, **NOISE_FALLS}, {**NOISE_FALLS}, {}])
def test_without_a_finite_claim_there_is_no_guarantee(changes):
    own = account(math.inf, **changes)
    assert own.statement(OsEntropy()).guarantee == "none"
    assert own.affordable > 0


@pytest.mark.parametrize("changes", [{}, NOISE_FALLS, {"noise_multiplier": 0.55, "rounds": 100}])
def test_no_more_is_planned_or_claimed_than_the_largest_epsilon(changes):
    own = account(40.0, **changes)
    assert own.claim <= accounting.LARGEST_EPSILON
    assert accounting.total_epsilon(costs=[own.cost], delta=1e-5) < math.inf


def test_hardly_any_noise_is_an_infinite_figure_at_once():
    own = account(math.inf, noise_multiplier=0.001)
    assert own.statement(OsEntropy()).details["epsilon_by_pld_as_planned"] == math.inf


def test_a_budget_that_buys_nothing_takes_no_part():
    own = account(0.01, **CONTROLLED, rounds=5)
    assert own.affordable == own.take(3) == 0
    assert own.statement(OsEntropy()).details["steps"] == 0


BEFORE = (accounting.Steps(1.0, 1.0, 1),)  # mu = 1


@pytest.mark.parametrize("control", ["const", "scheduled", "falling_loss"])
def test_what_came_before_is_part_of_the_budget(control):
    settings = Dpsgd(**{**DPSGD, "noise_control": control, "noise_decay": 0.9})
    own, alone = (
        dpsgd.new_account(8.0, 1e-5, settings, BEFORE),
        dpsgd.new_account(8.0, 1e-5, settings),
    )
    assert own.first > alone.first and own.affordable >= 5
    assert sum(own.take(2) for _ in range(3)) >= 5
    assert own.taken[0] == BEFORE[0]
    spent = accounting.schedule_epsilon(schedule=own.taken, delta=1e-5)
    assert spent <= 8.0 and own.epsilon_spent <= 8.0 + 1e-9
    assert own.epsilon_spent >= spent - 1e-9
    assert 0 < accounting.total_epsilon(costs=[own.cost], delta=1e-5) <= 8.0 + 1e-6
    statement = own.statement(OsEntropy(), 2e-5)
    assert statement.delta == 2e-5 and statement.epsilon <= 8.0
    assert "to start from" in statement.mechanism and "OpenDP" in statement.noise


@pytest.mark.parametrize("control", ["falling_loss", "plateau"])
@pytest.mark.parametrize("rounds", [6, 60])
def test_noise_of_ones_own_lasts_for_all_rounds_though_it_falls_after_each(control, rounds):
    """60 rounds are planned in stairs of three: by what is left at the end of each."""
    settings = Dpsgd(
        **{
            **DPSGD,
            "noise_control": control,
            "noise_decay": 0.97,
            "noise_least": 0.01,
            "rounds": rounds,
        }
    )
    own = dpsgd.new_account(3.0, 1e-5, settings)
    assert [own.take(2, 0.97**number) for number in range(rounds)] == [2] * rounds
    assert 2.8 < own.epsilon_spent <= 3.0


def test_a_rule_deals_out_the_steps_that_noise_of_its_own_was_planned_for():
    """Every client takes the same number of steps, whatever its budget.

    It takes no more than the plan, however many the rule asks for at once.
    """
    settings = Dpsgd(**{**DPSGD, "local_steps_rule": "ratio"})
    small, large = (dpsgd.new_account(epsilon, 1e-5, settings) for epsilon in (1.0, 10.0))
    assert small.planned == small.affordable == large.affordable == 6 and small.first > large.first
    assert [large.take(count) for count in (5, 5)] == [5, 1]
    assert 9.9 < large.epsilon_spent <= 10.0


def test_a_budget_that_is_gone_before_the_first_step_is_refused():
    with pytest.raises(ValueError, match="leaves nothing"):
        dpsgd.new_account(2.0, 1e-5, Dpsgd(**DPSGD), BEFORE)


def test_norms_without_noise_void_the_guarantee():
    own = account(clipping="nonprivate_oracle", allow_nonprivate=True)
    statement = own.statement(OsEntropy())
    assert statement.guarantee == "none" and statement.epsilon == math.inf


@pytest.mark.parametrize("control", ["const", "falling_loss"])
def test_no_noise_of_ones_own_lets_what_came_before_pass_the_budget(control):
    """The exact cost of the images is below epsilon, and the run's own accountant says more."""
    settings = Dpsgd(**{**DPSGD, "noise_control": control, "noise_multiplier": 5.0})
    mu = accounting.gdp_mu(epsilon=3.0, delta=1e-5)
    with pytest.raises(ValueError, match="leaves nothing"):
        dpsgd.new_account(
            3.0, 1e-5, settings, (accounting.Steps(1 / (math.sqrt(0.95) * mu), 1.0, 1),)
        )


def test_what_has_no_guarantee_tells_no_finite_epsilon():
    watched = account(clipping="nonprivate_oracle", allow_nonprivate=True, **CONTROLLED)
    assert watched.take(2) and set(watched.running.values()) == {math.inf}
    own = account(clipping="nonprivate_oracle", allow_nonprivate=True)
    own.take(2)
    assert (
        own.epsilon_spent == math.inf
        and own.spent()["epsilon_by_pld"] == own.running["epsilon_by_pld"] == math.inf
    )
    for control in ({}, CONTROLLED):
        free = account(math.inf, **{**control, "noise_multiplier": None})
        free.take(2)
        assert free.running == {"epsilon_spent": math.inf, "epsilon_by_pld": math.inf}
    huge = account(math.inf, noise_multiplier=0.05)
    assert math.isfinite(huge.claim) and huge.statement(OsEntropy()).guarantee == "none"
