"""Tests the lattice of a plan: what it refuses, and that no noise reaches the ends of 64 bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines import config
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.federation.algorithms import dpsgd_head
from pipelines.lattice import lattice
from pipelines.privacy.discrete_gaussian import FINEST, Budget
from pipelines.privacy.lattice_gradients import COARSEST
from pipelines.privacy.noise import WIDEST, OsEntropy
from pipelines.synthesis import dp_head, joint_head, release
from pipelines.synthesis.joint_plan import Group

PARAMS = config.load()
SPACE = release.public_space(PARAMS.profiles["digits"])
TOO_SMALL = "The 'epsilon' parameter of clients must be larger: 64 bits have no room"


def test_a_caller_may_ask_for_a_finer_lattice():
    budget = Budget(1.0, 1e-5)
    needed = lattice(budget, sigmas=(3.0, 5.0), draws=10)
    assert needed == lattice(budget, sigmas=(5.0, 3.0), draws=10) < COARSEST
    assert lattice(budget, sigmas=(3.0,), draws=10, coarsest=COARSEST) == COARSEST
    assert lattice(budget, sigmas=(3.0,), draws=10, coarsest=2) == needed


def test_a_delta_next_to_nothing_is_refused():
    with pytest.raises(UserError, match="The 'delta' parameter of privacy must be larger"):
        lattice(Budget(1.0, 1e-320), sigmas=(1.0,), draws=10)


def test_noise_that_64_bits_do_not_hold_is_refused():
    widest = WIDEST / COARSEST
    asked = {"draws": 10, "coarsest": COARSEST}
    assert lattice(Budget(1.0, 1e-5), sigmas=(1.0, widest), **asked) == COARSEST
    with pytest.raises(UserError, match=TOO_SMALL):
        lattice(Budget(1.0, 1e-5), sigmas=(1.0, 2 * widest), **asked)


@settings(deadline=None, max_examples=200)
@given(
    epsilon=st.floats(1e-6, 1e9),
    delta=st.floats(1e-15, 0.5),
    shares=st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=3),
    coarsest=st.sampled_from([1, COARSEST]),
)
def test_a_lattice_that_is_planned_has_room_for_all_noise(epsilon, delta, shares, coarsest):
    budget = Budget(epsilon, delta)
    sigmas = [budget.sigma(share) for share in shares]
    try:
        scale = lattice(budget, sigmas=sigmas, draws=1000, coarsest=coarsest)
    except UserError:
        return
    assert coarsest <= scale <= FINEST
    # a draw ends at the edge in less than one of 10^200
    assert max(sigmas) * scale * 30 < 2**63


def widest_of_head(budget: Budget) -> float:
    details = dp_head.plan(PARAMS.generator("digits", "dp_head"), budget, SPACE).statement.details
    sigmas = [details["count"]["sigma"], *details["gradients"]["sigma_by_steps"].values()]
    return max(sigmas) * details["lattice"]["steps_per_unit"]


def widest_of_joint_head(budget: Budget) -> float:
    chosen = PARAMS.generator("digits", "joint_head")
    plan = joint_head.plan_together(chosen, budget, SPACE, Group(3, 1))
    widest = 0.0
    for course in plan.courses:
        of_course = [course.shares.share_steps(number) for number in range(len(course.shapes))]
        widest = max(widest, *of_course)
    return widest


def widest_of_reply(budget: Budget) -> float:
    settings_of_rounds = PARAMS.training("digits", "dpsgd_head")
    account = dpsgd_head.new_account(budget.epsilon, budget.delta, settings_of_rounds)
    nothing = np.zeros((SPACE.classes, dp_head.fixed_of(settings_of_rounds, SPACE).count + 1))
    client = dpsgd_head.Client(no_images(), nothing, account, OsEntropy())
    return max(account.first, account.count_sigma) * client.scale


def no_images() -> Images:
    pixels = np.zeros((0, *SPACE.shape), np.uint8)
    return Images(pixels, np.zeros(0, np.int64), np.zeros(0, np.int64))


@pytest.mark.parametrize("widest", [widest_of_head, widest_of_joint_head, widest_of_reply])
def test_a_head_is_refused_before_its_noise_outgrows_64_bits(widest):
    refused = []
    exponents = np.linspace(-6, 0, 13).tolist()
    for exponent in exponents:
        try:
            found = widest(Budget(10.0**exponent, 1e-7))
        except UserError as error:
            assert "larger: 64 bits have no room for the noise" in str(error)
            refused.append(exponent)
        else:
            assert found <= WIDEST
    # the smallest budgets, and no others
    assert refused == exponents[: len(refused)]
    assert 0 < len(refused) < 6
