"""Tests that a joint head is that of all records together, with the planned noise in each sum."""

import math

import numpy as np
import pytest

from benchmarks.recipe_step import pictures
from pipelines import config
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.errors import UserError
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.privacy.secure_sums.in_process import Summation
from pipelines.privacy.secure_sums.noise_shares import noisy
from pipelines.synthesis import dp_head, joint_head, release
from pipelines.synthesis.joint_fit import Member, fit_together
from pipelines.synthesis.joint_head import HeadPlan
from pipelines.synthesis.joint_plan import Group
from pipelines.training.tensors import tensors

PARAMS = config.load()
PARTS = {f"c{place}": pictures(PARAMS, "digits", 15 + 5 * place) for place in range(3)}
SPACE = release.public_space(PARAMS.profiles["digits"])
# few steps, of which there are more from 60 records on at infinite mu
SCHEDULES = [
    {"from_signal": 0, "steps": 2, "learning_rate": 4.0},
    {"from_signal": 100, "steps": 4, "learning_rate": 8.0},
]


def settings(**changes):
    shipped = PARAMS.generator("digits", "joint_head").model_dump()
    return type(PARAMS.generator("digits", "joint_head")).model_validate(
        {**shipped, "schedules": SCHEDULES, **changes}
    )


def planned(epsilon: float, colluding: int = 1, **changes) -> HeadPlan:
    group = Group(len(PARTS), colluding)
    return joint_head.plan_together(settings(**changes), Budget(epsilon, 1e-5), SPACE, group)


def fitted(plan: HeadPlan, noise=None, shards=PARTS) -> dict[str, np.ndarray]:
    sums = Summation("release", dict.fromkeys(PARTS, noise or OsEntropy()))
    return fit_together(joint_head, members(shards), plan, sums)


def members(shards: dict[str, Images]) -> list[Member]:
    return [Member(client, shard) for client, shard in shards.items()]


class Counting:
    """Has noise of a single value, and keeps the deviations it was asked for."""

    def __init__(self, value: int = 0):
        self.value = value
        self.deviations: list[float] = []

    def discrete_gaussian(self, shape, sigma):
        self.deviations.append(sigma)
        return np.full(shape, self.value, np.int64)


class Many:
    """Stands for so many records that their number does not fit into 64 bits on the lattice."""

    def __init__(self, count: int):
        self.count = count

    def __len__(self) -> int:
        return self.count


def test_however_many_records_there_are_their_number_is_released():
    """A refusal would tell the server, without noise, that they are so many."""
    plan = planned(10.0, head_share=1.0)
    edge = 2**63 // plan.scale
    for count in (edge - 1, edge, edge + 1):
        (member,) = members({"c0": Many(count)})
        with joint_head.contribution(member, plan) as part:
            (total,) = noisy(part([]), plan.shares, 0, noise=Counting())
        assert total.dtype == np.int64
        assert total == (count * plan.scale + 2**63) % 2**64 - 2**63


def test_more_records_than_64_bits_hold_are_refused_by_the_plan():
    space = release.public_space(PARAMS.profiles["digits"], 10**7)
    with pytest.raises(UserError, match=r"holds at most \d+ records .* 10000000 are declared"):
        joint_head.plan_together(settings(), Budget(10.0, 1e-5), space, Group(3, 1))


@pytest.mark.parametrize("head_share", [0.5, 1.0])
def test_without_noise_it_is_the_fit_of_all_records(head_share):
    plan = planned(math.inf, head_share=head_share)
    joint = fitted(plan)
    whole = concatenate(list(PARTS.values()))
    alone = dp_head.plan(plan.settings, Budget(math.inf, 1e-5), SPACE)
    expected = dp_head.fit(whole, alone, OsEntropy(), seed=0)
    assert joint.keys() == expected.keys()
    assert joint["records"] == len(whole)
    for state in (joint, expected):
        if "roots" in state:
            # a root of a covariance is one of many
            state["roots"] = state["roots"] @ state["roots"].transpose(0, 2, 1)
    for name, value in expected.items():
        # the joint sums are on a finer lattice than those of one client
        np.testing.assert_allclose(joint[name], value, atol=1e-4)


@pytest.mark.parametrize("colluding", [0, 1, 2])
@pytest.mark.parametrize("head_share", [0.5, 1.0])
def test_every_client_adds_its_share_to_every_sum(colluding, head_share):
    plan = planned(3.0, colluding, head_share=head_share)
    counting = Counting()
    fitted(plan, counting)
    details = plan.statement.details
    steps = len(counting.deviations) // 3 - plan.place_of_count - 1
    planned_sigmas = [details["count"]["sigma"]]
    planned_sigmas += [details["gradients"]["sigma_by_steps"][str(steps)]] * steps
    if head_share < 1:
        planned_sigmas = details["moments"]["sigma"] + planned_sigmas
    shares = [sigma * plan.scale / math.sqrt(3 - colluding) for sigma in planned_sigmas]
    # three clients draw for each sum
    assert counting.deviations[::3] == pytest.approx(shares)
    assert counting.deviations == pytest.approx(np.repeat(shares, 3))


def test_every_course_costs_the_budget_whole():
    plan = planned(3.0)
    assert [plan.steps_of(course) for course in plan.courses] == [2, 4]
    for course in plan.courses:
        assert course.shares.mu == pytest.approx(Budget(3.0, 1e-5).mu)
        assert course.shares.scale == plan.scale
        assert len(course.shares.sigmas) == len(course.shapes)
        # one client's share alone hides a record as the plan says, if all others collude
        assert course.shares.epsilon(honest=2) == pytest.approx(3.0)


def test_the_number_of_steps_follows_from_the_released_count_and_all_noise():
    plan = planned(3.0, head_share=1.0)
    mu = plan.statement.details["gradients"]["mu"]
    least = 100 * math.sqrt(3 / 2) / mu
    for count, steps in ((least - 1, 2), (least + 1, 4)):
        course = joint_head.course(plan, [np.array([count])])
        assert plan.steps_of(course) == steps
    assert joint_head.course(plan, []) is plan.courses[0]


def test_a_count_below_all_records_is_no_divisor():
    plan = planned(3.0, head_share=1.0)
    total = np.ones(plan.courses[0].shapes[1])
    released = [np.array([-50.0]), total, total]
    state = joint_head.joint_state(plan, released, [3, 3, 3], members(PARTS)[0])
    assert state["records"] == 10.0


@pytest.mark.parametrize("others", ["as released", "huge", "of another count"])
def test_one_record_more_moves_each_sum_by_one_at_most(others):
    """Whatever was said to be released before: a wrong total costs no privacy."""
    plan = planned(3.0)
    fewer = PARTS["c1"]
    more = concatenate([fewer, pictures(PARAMS, "digits", 1)])
    rng = np.random.default_rng(0)
    released = []
    course = plan.courses[0]
    while len(released) < len(course.shapes):
        shape = course.shapes[len(released)]
        sums = []
        for member in members({"fewer": fewer, "more": more}):
            with joint_head.contribution(member, plan) as part:
                sums.append(part(released))
        assert sums[0].shape == sums[1].shape == shape
        moved = (sums[1] - sums[0]) / plan.scale
        assert 0 < np.linalg.norm(moved) <= 1
        if others == "as released":
            released.append(sums[0] / plan.scale)
        else:
            released.append(rng.standard_normal(shape) * (1e6 if others == "huge" else 1.0))
        course = joint_head.course(plan, released)
    assert len(released) > plan.place_of_count + 2


def test_the_statement_says_whom_its_clients_trust_and_what_it_costs():
    statement = planned(3.0).statement
    assert statement.epsilon == 3.0
    assert statement.mu == pytest.approx(Budget(3.0, 1e-5).mu)
    assert statement.details["trust"]["dishonest"]["1"] == pytest.approx(3.0)
    assert "at most 1 of the 3 clients" in statement.sentence
    assert "what more than 1 of the 3 clients know together" in statement.not_covered


def test_a_client_alone_releases_what_dp_head_would():
    plan = joint_head.plan(settings(), Budget(math.inf, 1e-5), SPACE)
    assert plan.statement.trust is None
    state = joint_head.fit(PARTS["c2"], plan, OsEntropy(), seed=0)
    own = dp_head.plan(plan.settings, Budget(math.inf, 1e-5), SPACE)
    for name, value in dp_head.fit(PARTS["c2"], own, OsEntropy(), seed=0).items():
        np.testing.assert_allclose(state[name], value, atol=1e-5)


def test_a_client_alone_states_the_lattice_of_its_images():
    plan = joint_head.plan(settings(), Budget(10.0, 1e-5), SPACE)
    own = dp_head.plan(plan.settings, Budget(10.0, 1e-5), SPACE)
    assert plan.statement.details["moments"] == own.statement.details["moments"]


def test_it_classifies_and_draws_images():
    state = fitted(planned(10.0))
    images = joint_head.sample(state, 20, seed=0)
    assert images.images.shape == (20, 8, 8, 1)
    assert joint_head.classifier(state)(tensors(images)[0]).shape == (20, SPACE.classes)


def test_shares_of_two_courses_are_told_apart_by_their_terms():
    """Clients that were told different counts would add different noise: their round must fail."""
    first, second = planned(3.0).courses
    place = len(first.shapes) - 1
    assert first.shares.words(place) != second.shares.words(place)
