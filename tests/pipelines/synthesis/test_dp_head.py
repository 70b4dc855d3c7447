"""Tests `dp_head`: what its parts cost, the steps against a loop, the count, images and failures."""

import math

import numpy as np
import pytest

from pipelines.config.data import Encoder
from pipelines.config.generators import DpHead
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.evaluation.scoring import scores
from pipelines.privacy import accounting
from pipelines.privacy.discrete_gaussian import SLACK_SHARE, Budget
from pipelines.privacy.lattice_gradients import INPUT_STEPS
from pipelines.privacy.noise import OsEntropy, SeededForTests
from pipelines.privacy.statement import OF_NETWORK
from pipelines.synthesis import dp_head, dp_moments, release
from pipelines.synthesis.base import Space
from pipelines.training import linear_head, public_basis

BUDGET = Budget(5.0, 1e-5)
SPACE = Space(height=8, width=8, channels=1, classes=3)


@pytest.fixture
def head_settings(moments_settings):
    """Returns a factory of DpHead blocks."""
    own = {
        "head_share": 0.6,
        "count_share": 0.1,
        "clipping_norm": 0.5,
        "momentum": 0.8,
        "averaging": 0.9,
        "schedules": [
            {"from_signal": 0.0, "steps": 3, "learning_rate": 2.0},
            {"from_signal": 1e6, "steps": 5, "learning_rate": 4.0},
        ],
    }
    return lambda **changes: DpHead.model_validate(
        {**moments_settings().model_dump(), **own, **changes}
    )


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """Keeps features of records out of the project's folder. The public basis stays there."""
    monkeypatch.setattr(linear_head, "FEATURES", tmp_path)


def stripes(count: int, seed: int = 0) -> Images:
    """Returns stripes of three widths, with noise, in classes of unequal size."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, count, p=[0.5, 0.3, 0.2])
    rows = np.arange(8) // np.array([1, 2, 4])[labels][:, None] % 2
    pixels = np.repeat(rows[:, :, None, None] * 200, 8, axis=2) + rng.integers(
        0, 55, (count, 8, 8, 1)
    )
    return Images(pixels.astype(np.uint8), labels, np.arange(count))


def test_a_head_on_an_encoder_does_not_cover_its_pretraining(head_settings):
    encoder = Encoder(network="efficientnet_lite0", side=32)
    space = Space(height=8, width=8, channels=3, classes=3, encoder=encoder)
    pretraining = OF_NETWORK["encoder"][0]
    stated = dp_head.plan(head_settings(network="encoder"), BUDGET, space).statement
    assert pretraining in stated.not_covered
    assert pretraining not in dp_head.plan(head_settings(), BUDGET, SPACE).statement.not_covered


@pytest.mark.parametrize("share", [0.1, 0.6, 1.0])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0, 40.0])
def test_the_parts_spend_exactly_the_budget(head_settings, share, epsilon):
    """Whatever number of steps the count leads to."""
    budget = Budget(epsilon, 1e-5)
    details = dp_head.plan(head_settings(head_share=share), budget, SPACE).statement.details
    moments = details.get("moments", {"sigma": []})["sigma"]
    for steps, sigma in details["gradients"]["sigma_by_steps"].items():
        spent = [math.sqrt(int(steps)) / sigma, 1 / details["count"]["sigma"]]
        assert accounting.compose(spent) ** 2 == pytest.approx(share * budget.mu**2, rel=1e-9)
        everything = accounting.compose([*spent, *(1 / each for each in moments)])
        assert everything == pytest.approx(budget.mu, rel=1e-9)
        claimed = min(epsilon, accounting.LARGEST_EPSILON)
        assert accounting.gdp_delta(epsilon=claimed, mu=everything) <= 1e-5


def test_the_lattices_share_the_slack_in_delta(head_settings):
    details = dp_head.plan(head_settings(), BUDGET, SPACE).statement.details
    moments = details["moments"]
    slacks = [
        accounting.rounding_slack(
            epsilon=accounting.LARGEST_EPSILON,
            sigma=min(moments["sigma"]) * moments["lattice_steps_per_unit"],
            draws=moments["released_numbers"],
        )
    ]
    scale = details["lattice"]["steps_per_unit"]
    numbers = details["gradients"]["released_numbers_per_step"]
    for steps, sigma in details["gradients"]["sigma_by_steps"].items():
        part = accounting.rounding_slack(
            epsilon=accounting.LARGEST_EPSILON,
            sigma=min(sigma, details["count"]["sigma"]) * scale,
            draws=1 + int(steps) * numbers,
        )
        assert slacks[0] + part <= SLACK_SHARE * BUDGET.delta


def test_the_statement_names_the_public_basis(head_settings):
    plan = dp_head.plan(head_settings(), BUDGET, SPACE)
    basis = public_basis.stored_basis(SPACE.shape).sha256
    assert plan.statement.details["features"] == {"basis_sha256": basis}
    assert release.described(plan, OsEntropy()).guarantee == "formal"
    assert release.described(plan, SeededForTests(0)).guarantee == "none"


def test_the_head_is_that_of_a_loop_record_by_record(head_settings):
    """Noise and count are replayed from the same seed, gradients are added as floats."""
    settings = head_settings(head_share=1.0)
    plan = dp_head.plan(settings, BUDGET, SPACE)
    data = stripes(30)
    state = dp_head.fit(data, plan, SeededForTests(5), seed=0)
    details = plan.statement.details
    scale = details["lattice"]["steps_per_unit"]
    noise = SeededForTests(5)
    drawn = noise.discrete_gaussian((1,), details["count"]["sigma"] * scale).item() / scale
    count = max(30 + drawn, linear_head.LEAST_COUNT)
    assert float(state[dp_head.COUNT]) == pytest.approx(count)
    inputs = linear_head.lattice_inputs(data)
    weights = velocity = average = np.zeros((inputs.steps.shape[1], 3))
    for _ in range(3):
        total = np.zeros_like(weights)
        for x, label in zip(inputs.steps / INPUT_STEPS, inputs.labels):
            odds = np.exp(x @ weights)
            gradient = np.outer(x, odds / odds.sum() - np.eye(3)[label])
            total += gradient / max(0.5, np.linalg.norm(gradient))
        sigma = details["gradients"]["sigma_by_steps"]["3"]
        total += noise.discrete_gaussian(total.shape, sigma * scale) / scale
        velocity = 0.8 * velocity + total / count
        weights = weights - 2.0 * velocity
        average = 0.9 * average + 0.1 * weights
    np.testing.assert_allclose(state[dp_head.HEAD], average.T, rtol=1e-4, atol=1e-5)


def test_the_noisy_count_chooses_the_schedule(head_settings):
    """With a budget without end each count is above the last schedule's signal."""
    plan = dp_head.plan(head_settings(head_share=1.0), Budget(math.inf, 1e-5), SPACE)
    assert plan.statement.guarantee == "none"
    seen = []
    noise = SeededForTests(0)
    noise.discrete_gaussian = lambda shape, sigma: seen.append(sigma) or np.zeros(shape, np.int64)
    state = dp_head.fit(stripes(40), plan, noise, seed=0)
    assert float(state[dp_head.COUNT]) == 40 and not seen
    finite = dp_head.plan(head_settings(head_share=1.0), BUDGET, SPACE)
    dp_head.fit(stripes(40), finite, noise, seed=0)
    # the count, and three steps
    assert len(seen) == 4


def test_images_are_those_of_dp_moments_with_the_rest_of_the_budget(head_settings):
    settings = head_settings()
    plan = dp_head.plan(settings, BUDGET, SPACE)
    state = dp_head.fit(stripes(60), plan, SeededForTests(0), seed=0)
    part = dp_moments.plan(settings, Budget(5.0, 1e-5, 0.4, lattices=2), SPACE)
    alone = dp_moments.fit(stripes(60), part, SeededForTests(0), seed=0)
    data = dp_head.sample(state, 50, seed=3)
    expected = dp_moments.sample(alone, 50, seed=3)
    np.testing.assert_array_equal(data.images, expected.images)
    np.testing.assert_array_equal(data.labels, expected.labels)


def test_a_head_with_the_whole_budget_has_no_images(head_settings):
    plan = dp_head.plan(head_settings(head_share=1.0), BUDGET, SPACE)
    state = dp_head.fit(stripes(20), plan, SeededForTests(0), seed=0)
    with pytest.raises(UserError, match="has no images"):
        dp_head.sample(state, 5, seed=0)


def test_the_classifier_learns_from_the_records(head_settings):
    schedules = [{"from_signal": 0.0, "steps": 20, "learning_rate": 4.0}]
    plan = dp_head.plan(
        head_settings(head_share=1.0, schedules=schedules), Budget(10.0, 1e-5), SPACE
    )
    state = dp_head.fit(stripes(2000), plan, OsEntropy(), seed=0)
    assert scores(dp_head.classifier(state), stripes(300, seed=1))["accuracy"] > 0.95


def test_same_noise_same_bytes_and_other_noise_differs(head_settings, as_bytes):
    plan = dp_head.plan(head_settings(), BUDGET, SPACE)
    one, again, other = (
        as_bytes(dp_head.fit(stripes(20), plan, SeededForTests(seed), seed=0)) for seed in (1, 1, 2)
    )
    assert one == again != other


def test_an_empty_shard_takes_all_its_steps(head_settings):
    plan = dp_head.plan(head_settings(), BUDGET, SPACE)
    state = dp_head.fit(stripes(1)[:0], plan, SeededForTests(0), seed=0)
    assert all(np.isfinite(array).all() for array in state.values())
    assert float(state[dp_head.COUNT]) >= linear_head.LEAST_COUNT


def test_a_delta_too_small_for_the_lattice_is_refused(head_settings):
    with pytest.raises(UserError, match="lattice finer than 64 bits"):
        dp_head.plan(head_settings(), Budget(1.0, 1e-12), SPACE)
