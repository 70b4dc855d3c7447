"""Tests who makes a joint release together, and how many of them its noise allows to drop out."""

import math

import numpy as np
import pytest

from pipelines.errors import UserError
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.synthesis import joint_plan
from pipelines.synthesis.joint_plan import ALONE, Group, JointPlan


@pytest.mark.parametrize("clients", range(3, 12))
def test_of_two_sets_of_survivors_one_honest_client_would_have_to_sign_both(clients):
    """Brute force: so many may drop out that a server which lies gets two sets from nobody."""
    for colluding in range(clients):
        group = Group(clients, colluding)
        allowed = []
        for drops in range(clients):
            survivors = clients - drops
            # the colluding ones sign both sets, and each of the honest ones signs one
            honest_needed = 2 * (survivors - colluding)
            if honest_needed > clients - colluding:
                allowed.append(drops)
        assert group.most_drops == max(allowed)


def test_the_noise_of_all_is_more_than_planned_by_those_who_collude_and_those_who_drop_out():
    assert ALONE.excess == Group(5, 0).excess == 1.0
    assert Group(5, 2).excess == pytest.approx(math.sqrt(5 / 3))
    assert Group(5, 2, may_drop=1).excess == pytest.approx(math.sqrt(5 / 2))
    course = joint_plan.shared(Budget(1.0, 1e-5), (4.0,), ((3,),), Group(5, 2, may_drop=1))
    assert joint_plan.of_all(course.shares, 0) == pytest.approx(4.0 * math.sqrt(5 / 2))
    # four of five shares, in a sum that counts as one of five
    assert joint_plan.of_all(course.shares, 0, 4) == pytest.approx(4.0 / math.sqrt(2) * 2 * 5 / 4)
    assert course.shares.threshold == 4


def test_more_drop_outs_than_the_protocol_allows_are_no_plan():
    with pytest.raises(UserError, match="threshold must be in"):
        joint_plan.shared(Budget(1.0, 1e-5), (4.0,), ((3,),), Group(5, 2, may_drop=2))


def test_a_plan_says_how_many_may_drop_out_where_some_may():
    assert joint_plan.together(ALONE) == "1 client alone"
    assert joint_plan.together(Group(5, 2)) == "5 clients together"
    assert joint_plan.together(Group(5, 2, 1)) == "5 clients together (of whom 1 may drop out)"


def test_a_sum_of_fewer_clients_counts_as_that_of_all():
    course = joint_plan.shared(Budget(1.0, 1e-5), (4.0,), ((2,),), Group(5, 1, may_drop=1))
    plan = JointPlan(None, None, None, courses=(course,))
    total = np.array([4, -8]) * plan.scale
    np.testing.assert_array_equal(plan.of_all_clients(total, 5), [4.0, -8.0])
    np.testing.assert_array_equal(plan.of_all_clients(total, 4), [5.0, -10.0])
