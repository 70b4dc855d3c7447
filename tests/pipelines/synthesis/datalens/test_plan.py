"""Tests the arithmetic of a `datalens` plan, and its refusals."""

import math

import pytest
from blocks import DATALENS
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.config.generators import Datalens, TeachersRule
from pipelines.errors import UserError
from pipelines.privacy import accounting
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.synthesis.base import Space
from pipelines.synthesis.datalens import generator as datalens
from pipelines.synthesis.datalens.plan import number_of_teachers

BASE = {**DATALENS, "teachers": 1000, "steps": 100, "batch": 10, "top_k": 50}
BUDGET = Budget(10.0, 1e-5)
MNIST = Space(28, 28, 1, 10)
RULE = TeachersRule(noise=0.4, least_records=15, most_records=60, most_teachers=4000)
AUTO = {**BASE, "teachers": "auto", "teachers_rule": RULE.model_dump()}


@settings(deadline=None, max_examples=40)
@given(
    epsilon=st.floats(0.1, 25),
    k=st.integers(1, 300),
    batch=st.integers(1, 30),
    steps=st.integers(1, 400),
)
def test_the_planned_steps_spend_exactly_the_budget(epsilon, k, batch, steps):
    block = Datalens(**{**BASE, "top_k": k, "batch": batch, "steps": steps})
    budget = Budget(epsilon, 1e-5)
    details = datalens.plan(block, budget, MNIST).statement.details
    assert details["sigma"] == pytest.approx(2 * math.sqrt(k * batch * steps) / budget.mu)
    per_image = 2 * math.sqrt(k) / details["sigma"]
    spent = accounting.compose(
        [per_image] * (batch * steps)
    )  # every fake image is a query of its own
    assert spent == pytest.approx(budget.mu, rel=1e-9)
    lattice = details["sigma"] * details["lattice_steps_per_vote"]
    slack = accounting.rounding_slack(epsilon=epsilon, sigma=lattice, draws=batch * steps * 784)
    assert accounting.gdp_delta(epsilon=epsilon, mu=spent) + slack <= 1e-5 * (1 + 1e-7)


@pytest.mark.parametrize(
    "k, batch, a, teachers, steps",
    [
        (1, 10, 0.2, 50, 10),
        (1, 10, 0.5, 1000, 25011),
        (5, 10, 0.2, 400, 128),
        (20, 10, 0.2, 50, 0),
        (20, 10, 0.2, 1000, 200),
        (50, 15, 0.5, 4000, 5335),
        (200, 15, 0.2, 4000, 213),
        (200, 15, 1.0, 100, 3),
        (200, 15, 1.0, 400, 53),
        (200, 15, 1.0, 4000, 5335),
    ],
)
def test_affordable_steps_golden_values(k, batch, a, teachers, steps):
    """The values are the table's column of exact GDP at epsilon 10.

    Here a = sigma / N = 1, and `a` of N teachers is 1 of a N.
    """
    block = Datalens(**{**BASE, "top_k": k, "batch": batch, "teachers": round(a * teachers)})
    affordable = datalens.plan(block, BUDGET, MNIST).statement.details[
        "steps_affordable_at_sigma_N_1"
    ]
    assert steps * 0.999 - 1 <= affordable <= steps  # a thousandth of delta is the lattice's


@pytest.mark.parametrize(
    "k, batch, steps, epsilon, teachers, ratio",
    [
        (10, 10, 100, 10, 100, 1.00),
        (50, 10, 100, 10, 1000, 0.22),
        (50, 15, 200, 10, 287, 1.35),
        (50, 10, 100, 3, 400, 1.55),
        (50, 10, 100, 1, 4000, 0.42),
        (300, 15, 110, 10, 4000, 0.18),
    ],
)
def test_noise_per_teacher_golden_values(k, batch, steps, epsilon, teachers, ratio):
    block = Datalens(**{**BASE, "top_k": k, "batch": batch, "steps": steps, "teachers": teachers})
    details = datalens.plan(block, Budget(epsilon, 1e-5), MNIST).statement.details
    assert details["sigma_over_N"] == pytest.approx(ratio, abs=0.0051)


def test_a_working_plan_is_not_weak_under_either_policy():
    one, other = (
        datalens.plan(Datalens(**{**BASE, "weak_plan": policy}), BUDGET, MNIST)
        for policy in ("refuse", "warn")
    )
    assert one.weak == other.weak == ()
    assert (
        one.statement == other.statement
    )  # what the ledger knows a release by: the word alone is no new one


@pytest.mark.parametrize(
    "changes",
    [
        {"teachers": 24},  # nothing to buy
        {"steps": 2100},  # 2000 are affordable
        {"teachers": 150, "steps": 40},  # quiet enough, but 45 steps are all that could be bought
    ],
)
def test_a_weak_plan_refuses_with_what_would_work_or_warns(changes):
    with pytest.raises(UserError) as refusal:
        datalens.plan(
            Datalens(**{**BASE, "weak_plan": "refuse", **changes}), Budget(10.0, 1e-5), MNIST
        )
    for word in ("steps", "sigma/N", "dp_moments", "teachers", "epsilon", "weak_plan"):
        assert word in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert datalens.plan(Datalens(**{**BASE, "weak_plan": "warn", **changes}), BUDGET, MNIST).weak


def test_more_votes_than_pixels_is_one_sentence():
    with pytest.raises(
        UserError, match=r"'top_k' parameter .* at most the 784 pixels .* Got 785 instead"
    ):
        datalens.plan(Datalens(**{**BASE, "top_k": 785}), BUDGET, MNIST)


def test_one_fake_is_no_batch_for_batch_norm():
    for network, batch in (("conv", 2), ("mlp", 1), ("paper", 1)):
        datalens.plan(
            Datalens(**{**BASE, "generator_network": network, "batch": batch}), BUDGET, MNIST
        )
    with pytest.raises(
        UserError,
        match=r"'batch' parameter of synthesis\.datalens must be at least 2 for .* Got 1 inst",
    ):
        datalens.plan(Datalens(**{**BASE, "generator_network": "conv", "batch": 1}), BUDGET, MNIST)


def test_infinite_budget_has_no_noise_and_no_guarantee():
    plan = datalens.plan(Datalens(**{**BASE, "weak_plan": "refuse"}), Budget(math.inf, 1e-5), MNIST)
    assert (
        plan.statement.details["sigma"] == 0
        and plan.statement.guarantee == "none"
        and plan.weak == ()
    )


def test_the_papers_accountant_is_printed_and_is_never_the_claim():
    statement = datalens.plan(Datalens(**BASE), Budget(3.0, 1e-5), MNIST).statement
    assert statement.epsilon == 3.0
    assert statement.details["epsilon_by_the_papers_accountant"] > 3.0


@pytest.mark.parametrize(
    "sigma, records, teachers",
    [
        (1670.0, 60_000, 4000),  # 4,175 are quiet enough, and memory holds 4,000
        (224.0, 60_000, 1000),  # 560 are quiet enough, but a teacher has 60 records at most
        (224.0, 12_000, 560),  # as few as are quiet enough
        (1670.0, 12_000, 800),  # none is quiet enough with 15 records each
        (0.0, 12_000, 200),  # no noise
        (224.0, 14, 1),  # never none
        (1e9, 10**8, 4000),
    ],
)
def test_the_number_of_teachers_golden_values(sigma, records, teachers):
    assert number_of_teachers(RULE, sigma, records) == teachers


@settings(deadline=None, max_examples=60)
@given(
    sigma=st.floats(0, 1e5),
    more=st.floats(0, 1e5),
    records=st.integers(60, 10**7),
    extra=st.integers(0, 10**6),
)
def test_more_noise_or_more_records_never_mean_fewer_teachers(sigma, more, records, extra):
    count = number_of_teachers(RULE, sigma, records)
    assert count <= number_of_teachers(RULE, sigma + more, records)
    assert count <= number_of_teachers(RULE, sigma, records + extra)
    assert 1 <= count <= RULE.most_teachers and records / count >= RULE.least_records


@pytest.mark.parametrize("epsilon", [1.0, 10.0, math.inf])
def test_auto_is_the_same_release_as_the_number_that_it_comes_to(epsilon):
    """The ledger knows a release by its number of teachers, and not by how that was found."""
    budget = Budget(epsilon, 1e-5)
    space = Space(28, 28, 1, 10, records=12_000)
    found = datalens.plan(Datalens(**AUTO), budget, space)
    named = datalens.plan(Datalens(**{**BASE, "teachers": found.settings.teachers}), budget, MNIST)
    assert found.statement == named.statement
    assert found.weak == named.weak


def test_auto_tells_how_many_teachers_it_takes():
    space = Space(28, 28, 1, 10, records=60_000)
    (line,) = datalens.plan(Datalens(**AUTO), BUDGET, space).lines
    assert "1000 teachers, 60 records each if the public number of 60000 holds" in line
    (line,) = datalens.plan(Datalens(**BASE), BUDGET, space).lines
    assert "teachers" not in line


def test_auto_without_a_public_number_of_records_is_one_sentence():
    with pytest.raises(
        UserError,
        match=r"'teachers' parameter of synthesis\.datalens must be a number .*Got 'auto'",
    ):
        datalens.plan(Datalens(**AUTO), BUDGET, MNIST)


@pytest.mark.parametrize("above, latent", [(0.2, 3), (0.25, 4)])
def test_what_counts_at_high_noise_is_decided_by_the_ratio_and_stated_as_a_value(above, latent):
    block = Datalens(**BASE, high_noise={"above": above, "latent": 3})
    plan = datalens.plan(block, BUDGET, MNIST)
    details = plan.statement.details
    assert details["sigma_over_N"] == pytest.approx(0.224, abs=1e-3)
    assert plan.settings.latent == latent
    as_written = datalens.plan(Datalens(**{**BASE, "latent": latent}), BUDGET, MNIST)
    assert details == as_written.statement.details


def test_teachers_that_auto_takes_decide_what_the_noise_is():
    instead = {"above": 0.41, "latent": 3}
    space = Space(28, 28, 1, 10, records=12_000)
    block = Datalens(**{**AUTO, "high_noise": instead})
    latents = [datalens.plan(block, Budget(e, 1e-5), space).settings.latent for e in (1.0, 10.0)]
    assert latents == [3, BASE["latent"]]


@pytest.mark.parametrize("above, is_high", [(0.45, True), (0.55, False)])
def test_fewer_steps_at_high_noise_count_for_the_noise_and_the_teachers(above, is_high):
    instead = {"above": above, "latent": BASE["latent"], "steps": 10}
    space = Space(28, 28, 1, 10, records=12_000)
    budget = Budget(3.0, 1e-5)
    block = Datalens(**{**AUTO, "steps": 40, "high_noise": instead})
    plan = datalens.plan(block, budget, space)
    # as many teachers as 12,000 records allow
    many = datalens.plan(Datalens(**{**AUTO, "steps": 40}), budget, space)
    assert many.statement.details["sigma_over_N"] == pytest.approx(0.5, abs=0.03)
    few = datalens.plan(Datalens(**{**AUTO, "steps": 10}), budget, space)
    assert few.settings.teachers < many.settings.teachers
    assert plan.statement == (few if is_high else many).statement


def test_a_budget_without_end_has_no_noise_to_look_at():
    block = Datalens(**BASE, high_noise={"above": 0.1, "latent": 3})
    assert datalens.plan(block, Budget(math.inf, 1e-5), MNIST).settings.latent == BASE["latent"]
