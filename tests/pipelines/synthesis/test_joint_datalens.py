"""Tests that joint votes are those of all clients' teachers, with the planned noise in shares."""

import math

import numpy as np
import pytest

from pipelines import seeds
from pipelines.config.generators import JointDatalens
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.privacy.secure_sums.in_process import Summation
from pipelines.synthesis import joint_datalens
from pipelines.synthesis.base import Space
from pipelines.synthesis.datalens import generator as datalens
from pipelines.synthesis.datalens import votes
from pipelines.synthesis.datalens.ensemble import Ensemble
from pipelines.synthesis.datalens.student import Student
from pipelines.synthesis.joint_fit import Member, fit_together
from pipelines.synthesis.joint_plan import Group, JointPlan
from pipelines.training.tensors import device

SPACE = Space(height=6, width=5, channels=1, classes=3)
SEED = 5


@pytest.fixture
def planned(datalens_settings):
    """Returns a factory of plans of three clients with two teachers each."""

    def make(epsilon: float = math.inf, colluding: int = 1, **changes) -> JointPlan:
        block = datalens_settings(teachers=7, **changes).model_dump()
        settings = JointDatalens.model_validate(block)
        group = Group(3, colluding)
        return joint_datalens.plan_together(settings, Budget(epsilon, 1e-5), SPACE, group)

    return make


@pytest.fixture
def members(records) -> list[Member]:
    everyone = records(45, SPACE)
    return [Member(f"c{k}", everyone[np.arange(15 * k, 15 * k + 15)], SEED) for k in range(3)]


def fitted(plan: JointPlan, members: list[Member], noise=None) -> dict[str, np.ndarray]:
    sums = Summation("release", {member.client: noise or OsEntropy() for member in members})
    return fit_together(joint_datalens, members, plan, sums)


class Counting:
    """Has no noise, and keeps the deviations it was asked for."""

    def __init__(self):
        self.deviations: list[float] = []

    def discrete_gaussian(self, shape, sigma):
        self.deviations.append(sigma)
        return np.zeros(shape, np.int64)


def teachers_of(member: Member, plan: JointPlan) -> Ensemble:
    """Returns two teachers of a client, as the code of one client makes them."""
    seed = seeds.derive(SEED, "teachers of", member.client)
    owner = votes.assign(member.shard.ids, 2, key=seed.to_bytes(8, "big"))
    recipe = datalens.recipe_of(plan, 2, seed, device("cpu"))
    return Ensemble(recipe, member.shard, owner, datalens.ballot(plan.settings))


def test_without_noise_the_generator_follows_the_votes_of_all_teachers(planned, members):
    plan = planned(steps=4, cosine=True)
    found = fitted(plan, members)
    student = Student(plan.settings, SPACE, SEED, device("cpu"))
    ensembles = [teachers_of(member, plan) for member in members]
    for step in range(4):
        question = student.ask(step)
        rounds = student.rounds(step)
        total = sum(ensemble.poll(*question.arrays, rounds) for ensemble in ensembles)
        student.learn(step, question, total.astype(float))
    expected = datalens.neural.state(student.training.network)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5)


def test_clients_have_as_many_teachers_each_and_weights_of_their_own(planned, members):
    plan = planned()
    assert plan.settings.teachers == 6
    assert plan.statement.details["N"] == 6
    assert plan.statement.details["teachers_of_a_client"] == 2
    first, second = (teachers_of(member, plan).states()[0] for member in members[:2])
    assert any(not np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("colluding", [0, 1, 2])
def test_every_client_adds_its_share_to_every_step(planned, members, colluding):
    plan = planned(3.0, colluding, steps=3)
    counting = Counting()
    fitted(plan, members, counting)
    details = plan.statement.details
    # sigma is in votes, and a vote has so many lattice steps
    share = details["sigma"] * details["lattice_steps_per_vote"] / math.sqrt(3 - colluding)
    assert counting.deviations == pytest.approx([share] * 9, rel=1e-6)
    assert min(counting.deviations) >= share


def test_all_steps_cost_the_budget_whole(planned):
    plan = planned(3.0, steps=7)
    assert plan.shares.mu == pytest.approx(Budget(3.0, 1e-5).mu)
    details = plan.statement.details
    # what one teacher can move is the unit, at which the noise is planned
    assert details["sensitivity"] * details["lattice_steps_per_vote"] <= plan.scale
    by_votes = details["sensitivity"] * math.sqrt(7) / details["sigma"]
    assert by_votes == pytest.approx(Budget(3.0, 1e-5).mu)
    assert details["sigma_over_N"] == pytest.approx(details["sigma"] * math.sqrt(3 / 2) / 6)


@pytest.mark.parametrize(("above", "steps"), [(0.01, 3), (100.0, 7)])
def test_the_sums_are_those_that_the_statement_has_however_much_noise_there_is(
    planned, above, steps
):
    high_noise = {"above": above, "latent": 3, "steps": 3}
    plan = planned(3.0, steps=7, high_noise=high_noise)
    details = plan.statement.details
    assert len(plan.courses[0].shapes) == details["T"] == plan.settings.steps == steps
    in_votes = plan.shares.sigmas[0] * details["sensitivity"]
    assert in_votes == pytest.approx(details["sigma"])
    assert plan.shares.mu == pytest.approx(Budget(3.0, 1e-5).mu)
    assert f" {steps} steps at sigma/N = {details['sigma_over_N']:.2f}" in plan.lines[0]


def test_one_record_more_moves_a_step_by_the_unit_at_most(planned, members):
    plan = planned(3.0, steps=2, learning_rate=0.1, teacher_steps=8)
    more = members[1]
    fewer = Member(more.client, more.shard[np.arange(1, 15)], SEED)
    made = []
    for member in (more, fewer):
        with joint_datalens.contribution(member, plan) as part:
            # a server may say any total
            made.append([part([]), part([np.full((plan.settings.batch, 30), 1e6)])])
    for with_record, without in zip(*made):
        moved = np.linalg.norm(with_record - without)
        assert moved <= plan.scale
    assert any(not np.array_equal(a, b) for a, b in zip(*made))


def test_the_statement_says_whom_its_clients_trust_and_what_it_costs(planned):
    statement = planned(3.0, weak_plan="warn").statement
    assert statement.epsilon == 3.0
    assert statement.details["trust"]["dishonest"]["1"] == pytest.approx(3.0)
    assert "at most 1 of the 3 clients" in statement.sentence


def test_teachers_on_several_machines_are_refused_before_anything_is_spent(planned, monkeypatch):
    monkeypatch.setattr(joint_datalens.machines, "several", lambda: True)
    with pytest.raises(UserError, match="on one machine"):
        planned(3.0)


def test_a_weak_plan_names_this_generators_own_setting(planned):
    with pytest.raises(UserError, match=r"synthesis\.joint_datalens\.weak_plan"):
        planned(0.1, weak_plan="refuse")


def test_the_number_of_teachers_follows_from_the_records_of_all(planned, datalens_settings):
    rule = {"noise": 0.4, "least_records": 15, "most_records": 60, "most_teachers": 4000}
    block = datalens_settings(teachers="auto", teachers_rule=rule, top_k=10).model_dump()
    settings = JointDatalens.model_validate({**block, "weak_plan": "warn"})
    space = Space(6, 5, 1, 3, records=900)
    plan = joint_datalens.plan_together(settings, Budget(1.0, 1e-5), space, Group(3, 0))
    # 900 records are 60 teachers of 15, of which each of three clients has a third
    assert plan.statement.details["teachers_of_a_client"] == 20


def test_a_client_alone_releases_what_datalens_would(datalens_settings, records):
    settings = JointDatalens.model_validate(datalens_settings().model_dump())
    plan = joint_datalens.plan(settings, Budget(math.inf, 1e-5), SPACE)
    assert plan.statement.trust is None
    shard = records(20, SPACE)
    state = joint_datalens.fit(shard, plan, OsEntropy(), SEED)
    own = datalens.plan(plan.settings, Budget(math.inf, 1e-5), SPACE)
    for name, value in datalens.fit(shard, own, OsEntropy(), SEED).items():
        np.testing.assert_allclose(state[name], value, atol=1e-5)
    assert isinstance(joint_datalens.sample(state, 4, seed=0), Images)
