"""Tests `dp_teacher` (moment_generators.md, Part I 4): what both parts cost, the steps against a
loop, labels.
"""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pipelines.config.generators import DpTeacher
from pipelines.datasets.labelled_images import Images
from pipelines.privacy import accounting
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy, SeededForTests
from pipelines.synthesis import dp_moments, dp_teacher, release
from pipelines.training.tensors import state_of, tensors

BUDGET = Budget(5.0, 1e-5)


@pytest.fixture
def teacher_settings(moments_settings):
    """Returns a factory of DpTeacher blocks."""
    own = {
        "teacher_share": 0.6,
        "steps": 3,
        "clipping_norm": 0.5,
        "learning_rate": 0.7,
        "momentum": 0.8,
        "averaging": 0.9,
        "classifier": "mlp",
        "augmentation": None,
        "warm_start": {"images": 40, "epochs": 2, "batch": 8, "learning_rate": 1e-3},
    }
    return lambda **changes: DpTeacher.model_validate(
        {**moments_settings().model_dump(), **own, **changes}
    )


class NoNoise(SeededForTests):
    """Draws no discrete noise.

    The moments are exact, as if the budget were infinite for them alone.
    """

    def discrete_gaussian(self, shape, sigma):
        return np.zeros(shape, np.int64)


@pytest.mark.parametrize("share", [0.1, 0.6, 0.95])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0, 40.0])
def test_the_parts_spend_exactly_the_budget(teacher_settings, small_space, share, epsilon):
    budget = Budget(epsilon, 1e-5)
    details = dp_teacher.plan(
        teacher_settings(teacher_share=share), budget, small_space
    ).statement.details
    gradients = details["gradients"]
    steps = math.sqrt(gradients["T"]) * gradients["sensitivity"] / gradients["sigma"]
    assert steps**2 == pytest.approx(share * budget.mu**2, rel=1e-9)
    everything = accounting.compose([steps, *(1 / sigma for sigma in details["moments"]["sigma"])])
    assert everything == pytest.approx(budget.mu, rel=1e-9)
    claimed = min(epsilon, accounting.LARGEST_EPSILON)
    assert accounting.gdp_delta(epsilon=claimed, mu=everything) <= 1e-5


def test_the_statement_names_both_kinds_of_noise(teacher_settings, small_space):
    plan = dp_teacher.plan(teacher_settings(), BUDGET, small_space)
    statement = release.described(plan, OsEntropy())
    assert statement.guarantee == "formal"
    assert "discrete Gaussian" in statement.noise and "rounded float normal" in statement.noise
    assert release.described(plan, SeededForTests(0)).guarantee == "none"


def test_small_budgets_are_told_by_the_clients_epsilon(teacher_settings, small_space):
    """The share's epsilon does not count.

    The settings are those that dp_moments has for this client.
    """
    low = {"below": 3.0, "residual_clip": 0.7, "first_share": 0.8, "inflation": 1.8}
    block = teacher_settings(low_epsilon=low)
    for epsilon, expected in ((2.9, 0.7), (3.1, block.residual_clip)):
        details = dp_teacher.plan(block, Budget(epsilon, 1e-5), small_space).statement.details
        assert details["moments"]["settings"]["residual_clip"] == expected


def test_each_step_sums_all_records_and_noises_a_zero_sum_at_the_planned_level(
    records, small_space, teacher_settings, monkeypatch
):
    """With every gradient put to zero, what the first step moves is noise alone."""
    seen = []

    def nothing(model, images, labels, clipping_norm):
        seen.append((len(images), clipping_norm))
        return {name: torch.zeros_like(parameter) for name, parameter in model.named_parameters()}

    monkeypatch.setattr(dp_teacher, "clipped_sum", nothing)
    block = teacher_settings(steps=1, averaging=0.0, learning_rate=1.0)
    plan = dp_teacher.plan(block, BUDGET, small_space)
    state = dp_teacher.fit(records(30, small_space), plan, SeededForTests(0), seed=0)
    assert seen == [(30, block.clipping_norm)]
    still = dp_teacher.plan(block, Budget(math.inf, 1e-5), small_space)
    monkeypatch.setattr(
        dp_teacher, "_moments_plan", lambda *given: dp_moments.plan(block, part(block), small_space)
    )
    start = dp_teacher.fit(records(30, small_space), still, SeededForTests(0), seed=0)
    names = [name for name in state if name.startswith(dp_teacher.PREFIX)]
    moved = np.concatenate([(state[name] - start[name]).ravel() for name in names]) * float(
        state["count"]
    )
    expected = plan.statement.details["gradients"]["sigma"]
    assert moved.std() == pytest.approx(expected, rel=4 / math.sqrt(2 * len(moved)))
    assert abs(moved.mean()) < 4 * expected / math.sqrt(len(moved))


def part(block: DpTeacher) -> Budget:
    return Budget(BUDGET.epsilon, BUDGET.delta, 1 - block.teacher_share)


def test_the_steps_are_those_of_a_loop_record_by_record(records, small_space, teacher_settings):
    block = teacher_settings()
    data = records(12, small_space)
    model = dp_teacher.classifiers.build("mlp", shape=small_space.shape, classes=3, seed=1)
    other = dp_teacher.classifiers.build("mlp", shape=small_space.shape, classes=3, seed=1)
    dp_teacher._noisy_steps(model, data, block, 0.3, 11.5, SeededForTests(5))
    stream, (images, labels) = np.random.default_rng(5), tensors(data)
    weights = list(other.parameters())
    average, speed = [w.detach().clone() for w in weights], [torch.zeros_like(w) for w in weights]
    for _ in range(3):
        total = [torch.zeros_like(w) for w in weights]
        for image, label in zip(images, labels):
            gradients = torch.autograd.grad(
                F.cross_entropy(other(image[None]), label[None]), weights
            )
            norm = torch.sqrt(sum(g.square().sum() for g in gradients)).item()
            total = [t + g * min(1.0, 0.5 / norm) for t, g in zip(total, gradients)]
        with torch.no_grad():
            for i, weight in enumerate(weights):
                noisy = (
                    total[i]
                    + 0.3 * torch.from_numpy(stream.standard_normal(tuple(weight.shape))).float()
                )
                speed[i] = 0.8 * speed[i] + noisy / 11.5
                weight -= 0.7 * speed[i]
                average[i] = 0.9 * average[i] + 0.1 * weight
    for found, expected in zip(model.parameters(), average):
        np.testing.assert_allclose(
            found.detach().numpy(), expected.numpy(), atol=3e-4
        )  # the grid's step is 0.3 / 1024


def test_the_divisor_is_the_released_count(records, small_space, teacher_settings):
    plan = dp_teacher.plan(teacher_settings(), BUDGET, small_space)
    state = dp_teacher.fit(records(500, small_space), plan, SeededForTests(3), seed=0)
    assert float(state["count"]) == pytest.approx(500, abs=60)
    assert float(state["count"]) != 500


def test_labels_are_the_classifiers(records, small_space, teacher_settings):
    plan = dp_teacher.plan(teacher_settings(), BUDGET, small_space)
    state = dp_teacher.fit(records(60, small_space), plan, SeededForTests(0), seed=0)
    data = dp_teacher.sample(state, 80, seed=2)
    plain = dp_moments.sample(state, 80, seed=2)
    np.testing.assert_array_equal(data.images, plain.images)
    model = dp_teacher.classifier(state)
    with torch.no_grad():
        np.testing.assert_array_equal(data.labels, model(tensors(data)[0]).argmax(1).numpy())
    weights = {
        name.removeprefix("teacher."): state[name] for name in state if name.startswith("teacher.")
    }
    assert all(np.array_equal(array, weights[name]) for name, array in state_of(model).items())


def test_the_teacher_learns_from_the_records(small_space, teacher_settings):
    """Classes of one mean each would be easy; here a class is a bright half or the other, so moments say nothing."""
    rng = np.random.default_rng(0)
    labels = np.arange(600) % 2
    side = rng.integers(0, 2, 600)
    images = np.zeros((600, 6, 5, 1), np.uint8)
    images[:, :3] = (side * 255)[:, None, None, None]
    images[:, 3:] = ((side ^ labels) * 255)[:, None, None, None]
    data = Images(images, labels, np.arange(600))
    block = teacher_settings(steps=60, learning_rate=1.0, clipping_norm=1.0, averaging=0.5)
    plan = dp_teacher.plan(block, Budget(math.inf, 1e-5), small_space)
    state = dp_teacher.fit(data, plan, NoNoise(0), seed=0)
    with torch.no_grad():
        found = dp_teacher.classifier(state)(tensors(data)[0]).argmax(1).numpy()
    assert np.mean(found == labels) > 0.95


def test_an_infinite_budget_claims_nothing(teacher_settings, small_space):
    statement = dp_teacher.plan(teacher_settings(), Budget(math.inf, 1e-5), small_space).statement
    assert (statement.guarantee, statement.noise) == ("none", "none")
    assert statement.details["gradients"]["sigma"] == 0 and statement.details["moments"][
        "sigma"
    ] == [0.0, 0.0]


def test_same_seed_same_bytes_with_test_noise_and_other_noise_differs(
    records, small_space, teacher_settings
):
    plan, data = dp_teacher.plan(teacher_settings(), BUDGET, small_space), records(20, small_space)
    one, again, other = (
        dp_teacher.fit(data, plan, SeededForTests(seed), seed=0) for seed in (1, 1, 2)
    )
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not np.array_equal(one["teacher.1.weight"], other["teacher.1.weight"])


def test_an_empty_shard_takes_all_its_steps(records, small_space, teacher_settings):
    plan = dp_teacher.plan(teacher_settings(), BUDGET, small_space)
    state = dp_teacher.fit(records(1, small_space)[:0], plan, SeededForTests(0), seed=0)
    assert all(np.isfinite(array).all() for array in state.values())
