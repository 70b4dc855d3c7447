"""Tests that a joint release is that of all records together, with the planned noise."""

import math

import deviations
import numpy as np
import pytest

from benchmarks.recipe_step import pictures
from pipelines import config
from pipelines.config.generators import JointMoments
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.errors import UserError
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import Noise, OsEntropy
from pipelines.privacy.secure_sums.in_process import Summation
from pipelines.synthesis import dp_moments, joint_moments, release
from pipelines.synthesis.joint_fit import Member, fit_together
from pipelines.synthesis.joint_plan import Group, JointPlan

PARAMS = config.load()
PARTS = {f"c{place}": pictures(PARAMS, "digits", 20 + 10 * place) for place in range(5)}


def planned(budget: Budget, colluding: int = 2, clients: int = 5, may_drop: int = 0) -> JointPlan:
    settings = PARAMS.generator("digits", "joint_moments")
    space = release.public_space(PARAMS.profiles["digits"])
    group = Group(clients, colluding, may_drop)
    return joint_moments.plan_together(settings, budget, space, group)


def sums(noise: Noise | None = None) -> Summation:
    return Summation("release", dict.fromkeys(PARTS, noise or OsEntropy()))


def members(shards: dict[str, Images]) -> list[Member]:
    return [Member(client, shard) for client, shard in shards.items()]


class Counting:
    """Has noise of a single value, and keeps the deviations it was asked for."""

    guarantee = "none"
    source = "counting"

    def __init__(self):
        self.deviations: list[float] = []

    def discrete_gaussian(self, shape, sigma):
        self.deviations.append(sigma)
        return np.zeros(shape, np.int64)


def test_without_noise_it_is_the_fit_of_all_records_to_the_last_bit():
    plan = planned(Budget(math.inf, 1e-5))
    joint = fit_together(joint_moments, members(PARTS), plan, sums())
    alone = dp_moments.plan(plan.settings, Budget(math.inf, 1e-5), plan.space)
    whole = dp_moments.fit(concatenate(list(PARTS.values())), alone, OsEntropy(), seed=0)
    assert joint.keys() == whole.keys()
    for name, value in whole.items():
        np.testing.assert_array_equal(joint[name], value)


def test_more_records_than_64_bits_hold_are_refused_by_the_plan():
    settings = PARAMS.generator("digits", "joint_moments")
    budget = Budget(10.0, 1e-5)
    room = 2**62 // planned(budget).scale
    for records, fits in [(room - 5, True), (2 * room, False)]:
        space = release.public_space(PARAMS.profiles["digits"], records)
        if fits:
            joint_moments.plan_together(settings, budget, space, Group(5, 2))
            continue
        with pytest.raises(UserError, match=rf"at most {room - 1} records .* {records} are decl"):
            joint_moments.plan_together(settings, budget, space, Group(5, 2))


LOW = {"below": 300.0, "cutoff": 5, "residual_clip": 1.0, "first_share": 0.5, "inflation": 2.0}
WEAK = {name: value for name, value in LOW.items() if name != "below"}


def planned_settings(records: int | None, epsilon: float, colluding: int = 2) -> dict:
    settings = JointMoments.model_validate(
        {**PARAMS.generator("digits", "joint_moments").model_dump(), "low_signal": LOW}
    )
    space = release.public_space(PARAMS.profiles["digits"], records)
    group = Group(5, colluding)
    plan = joint_moments.plan_together(settings, Budget(epsilon, 1e-5), space, group)
    stated = plan.statement.details["settings"]
    assert not {"low_signal", "low_epsilon"} & set(stated)
    assert plan.settings.cutoff == stated["cutoff"]
    return {name: stated[name] for name in WEAK}


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
@pytest.mark.parametrize("colluding", [0, 2])
def test_a_signal_is_weak_by_records_budget_and_noise_of_all(epsilon, colluding):
    """The noise of all is sqrt(5 / 3) of the planned one where two of five may collude."""
    excess = {0: 1.0, 2: math.sqrt(5 / 3)}[colluding]
    least = LOW["below"] * excess / Budget(epsilon, 1e-5).mu
    usual = PARAMS.generator("digits", "joint_moments")
    assert planned_settings(math.floor(least), epsilon, colluding) == WEAK
    assert planned_settings(math.ceil(least), epsilon, colluding) == {
        name: getattr(usual, name) for name in WEAK
    }


def test_without_a_declared_number_of_records_epsilon_decides_and_without_noise_neither_does():
    usual = PARAMS.generator("digits", "joint_moments")
    assert planned_settings(None, 1.0)["first_share"] == usual.low_epsilon.first_share
    assert planned_settings(None, 3.0)["first_share"] == usual.first_share
    assert planned_settings(10, math.inf)["first_share"] == usual.first_share


@pytest.mark.parametrize(("colluding", "may_drop"), [(0, 0), (2, 0), (4, 0), (0, 2), (2, 1)])
def test_every_client_adds_its_share_to_both_sums(colluding, may_drop):
    plan = planned(Budget(3.0, 1e-5), colluding, may_drop=may_drop)
    counting = Counting()
    fit_together(joint_moments, members(PARTS), plan, sums(counting))
    expected = []
    for sigma in plan.statement.details["sigma"]:
        share = sigma / math.sqrt(5 - may_drop - colluding) * plan.scale
        expected += [pytest.approx(share)] * 5
    assert counting.deviations == expected


def test_the_noise_of_a_sum_has_the_variance_of_all_shares():
    plan = planned(Budget(3.0, 1e-5))
    empty = dict.fromkeys(PARTS, np.zeros(4000, np.int64))
    total = sums().total(0, empty, plan.shares) / plan.scale
    sigma = plan.statement.details["sigma"][0] * math.sqrt(5 / 3)
    # a sample variance of 4000 lies within five of its deviations
    assert abs(np.var(total) / sigma**2 - 1) < 5 * math.sqrt(2 / 4000)


def test_the_covariances_are_read_with_the_noise_that_all_added(monkeypatch):
    """The estimate takes off what the noise of the second sum adds, which is that of all shares."""
    plan = planned(Budget(3.0, 1e-5))
    told = deviations.told(monkeypatch)
    fit_together(joint_moments, members(PARTS), plan, sums())
    of_all = [sigma * math.sqrt(5 / 3) for sigma in plan.statement.details["sigma"]]
    assert told == [pytest.approx(tuple(of_all))]


def test_one_record_more_moves_a_sum_by_one_at_most():
    plan = planned(Budget(math.inf, 1e-5))
    moved = []

    class Keeping(Summation):
        def total(self, number, vectors, shares):
            total = super().total(number, vectors, shares)
            moved.append(total / plan.scale)
            # the second sum looks at the same means in both worlds, as composition allows
            return moved[0] * plan.scale if number == 0 else total

    one = pictures(PARAMS, "digits", 1)
    more = {**PARTS, "c3": concatenate([PARTS["c3"], one])}
    for shards in (PARTS, more):
        keeping = Keeping("release", dict.fromkeys(PARTS, OsEntropy()))
        fit_together(joint_moments, members(shards), plan, keeping)
    for number in (0, 1):
        distance = np.linalg.norm(moved[2 + number] - moved[number])
        assert 0 < distance <= 1 + 1e-9


def test_the_statement_has_the_planned_epsilon_and_all_others():
    statement = planned(Budget(3.0, 1e-5)).statement
    trust = statement.details["trust"]
    assert statement.epsilon == 3.0
    assert trust["dishonest"]["2"] == pytest.approx(3.0)
    assert list(trust["dishonest"]) == ["0", "1", "2", "3", "4"]
    assert trust["dishonest"]["0"] < 3.0 < trust["dishonest"]["4"]
    assert "at most 2 of the 5 clients" in statement.sentence
    assert "what more than 2 of the 5 clients know together" in statement.not_covered


def test_where_nobody_is_trusted_one_share_is_all_the_noise():
    plan = planned(Budget(3.0, 1e-5), colluding=4)
    assert plan.shares.share(0) == pytest.approx(plan.statement.details["sigma"][0])
    assert plan.statement.details["trust"]["dishonest"]["4"] == pytest.approx(3.0)
    assert "holds against the server and all 4 other clients" in plan.statement.sentence
    assert "know together" not in " ".join(plan.statement.not_covered)


@pytest.mark.parametrize("epsilon", [30.0, 31.0, 1000.0])
def test_at_the_largest_epsilon_the_planned_row_is_what_was_planned(epsilon):
    statement = planned(Budget(epsilon, 1e-5)).statement
    assert statement.details["trust"]["dishonest"]["2"] == pytest.approx(30.0)


def test_without_privacy_nobody_is_said_to_be_trusted():
    plan = planned(Budget(math.inf, 1e-5))
    assert plan.statement.trust is None
    assert "holds" not in " ".join(plan.lines)


def test_a_delta_that_no_lattice_can_hold_is_refused():
    with pytest.raises(UserError, match="finer than 64 bits"):
        planned(Budget(3.0, 1e-40))


def test_a_refused_sum_is_an_error_in_a_sentence():
    plan = planned(Budget(3.0, 1e-5))
    twice = sums()
    fit_together(joint_moments, members(PARTS), plan, twice)
    with pytest.raises(UserError, match="The joint release has no sum: "):
        fit_together(joint_moments, members(PARTS), plan, twice)
