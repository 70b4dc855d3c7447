"""Tests `dp_merf` against dp_synthesis.md 1.6 (spec A): the released sum by definition, its
sensitivity by brute force.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models.generator import NormedGenerator
from pipelines.config.generators import DpMerf
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import SeededForTests
from pipelines.synthesis import dp_merf
from pipelines.synthesis.base import Space

SCALE = 2**20
SPACE = Space(6, 5, 1, 3)
SETTINGS = DpMerf(
    features=40,
    length_scale=4.0,
    count_weight=0.3,
    network="mlp",
    steps=5,
    batch=9,
    learning_rate=1e-2,
)
NOTHING = Budget(math.inf, 1e-5)


def changed(**changes) -> DpMerf:
    return DpMerf.model_validate({**SETTINGS.model_dump(), **changes})


def total(data: Images, block: DpMerf = SETTINGS) -> np.ndarray:
    return dp_merf.embedding_sum(data, block, SPACE, SCALE) / SCALE


@pytest.mark.parametrize("alpha", [0.1, 0.3, 1.0, 3.0])
def test_adding_a_record_moves_the_sum_by_the_claimed_sensitivity(records, alpha):
    """Every record moves it alike, because features have norm one: black, white and ordinary ones."""
    block = changed(count_weight=alpha)
    data = records(8, SPACE)
    data.images[0], data.images[1] = 0, 255
    claimed = dp_merf.plan(block, Budget(3.0, 1e-5), SPACE).statement.details["sensitivity"]
    assert claimed == pytest.approx(math.sqrt(1 + alpha**2))
    moved = [
        np.linalg.norm(total(data, block) - total(data[np.arange(8) != record], block))
        for record in range(8)
    ]
    assert max(moved) <= claimed
    assert min(moved) > claimed - 1e-4  # only the cut to the lattice is missing


def test_replacing_a_record_moves_the_sum_by_at_most_two(records):
    data = records(8, SPACE)
    for label in range(3):
        other = Images(data.images.copy(), data.labels.copy(), data.ids)
        other.images[0], other.labels[0] = 255 - data.images[0], label
        assert (
            np.linalg.norm(
                total(data, changed(count_weight=1.0)) - total(other, changed(count_weight=1.0))
            )
            <= 2
        )


def test_the_sum_is_that_of_the_definition(records, monkeypatch):
    data = records(11, SPACE)
    directions = dp_merf.frequencies(SETTINGS, SPACE)
    expected = np.zeros((3, 41))
    for image, label in zip(data.pixels, data.labels):
        angles = directions @ image.reshape(-1).astype(np.float64)
        expected[label] += [
            *(math.sqrt(2 / 40) * np.cos(angles)),
            *(math.sqrt(2 / 40) * np.sin(angles)),
            0.3,
        ]
    monkeypatch.setattr(dp_merf, "CHUNK", 4)
    np.testing.assert_allclose(total(data), expected, atol=11 / SCALE)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), size=st.floats(0, 1000))
def test_features_have_norm_one(seed, size):
    rng = np.random.default_rng(seed)
    phi = dp_merf.features(
        rng.normal(0, size, (3, *SPACE.shape)), dp_merf.frequencies(SETTINGS, SPACE)
    )
    np.testing.assert_allclose(np.linalg.norm(phi, axis=1), 1, rtol=1e-12)


def test_features_estimate_the_gaussian_kernel():
    """phi(x) . phi(y) is about exp(-|x - y|^2 / (2 l^2)) (Rahimi and Recht)."""
    block = changed(features=20_000)
    x = np.random.default_rng(0).random((4, *SPACE.shape))
    phi = dp_merf.features(x, dp_merf.frequencies(block, SPACE))
    distance = np.square(x.reshape(4, 1, -1) - x.reshape(1, 4, -1)).sum(-1)
    np.testing.assert_allclose(phi @ phi.T, np.exp(-distance / (2 * 4.0)), atol=0.03)


def test_frequencies_are_public_and_an_odd_number_loses_one(records):
    assert np.array_equal(
        dp_merf.frequencies(SETTINGS, SPACE), dp_merf.frequencies(changed(features=41), SPACE)
    )
    assert total(records(3, SPACE), changed(features=41)).shape == (3, 41)


@pytest.mark.parametrize(("epsilon", "over_mu"), [(1.0, 3.7306), (3.0, 1.3906), (10.0, 0.4999)])
def test_the_noise_spends_exactly_the_budget(epsilon, over_mu):
    """sigma = sensitivity / mu, against the spec's golden values of 1 / mu at delta 1e-5."""
    budget = Budget(epsilon, 1e-5)
    details = dp_merf.plan(SETTINGS, budget, SPACE).statement.details
    assert details["sigma"] == pytest.approx(details["sensitivity"] / budget.mu, rel=1e-12)
    assert details["sigma"] == pytest.approx(math.sqrt(1.09) * over_mu, rel=2e-4)
    assert details["released_numbers"] == 3 * 41


def test_fit_asks_for_the_planned_noise_once(records, noise_spy):
    plan = dp_merf.plan(SETTINGS, Budget(3.0, 1e-5), SPACE)
    dp_merf.fit(records(10, SPACE), plan, noise_spy, seed=0)
    details = plan.statement.details
    assert noise_spy.calls == [((3, 41), details["sigma"] * details["lattice_steps_per_unit"])]


def test_the_generator_comes_closer_to_the_means(records):
    data = records(60, SPACE)
    data.images[:] = 255
    means = total(data)[:, :-1] / np.bincount(data.labels)[:, None]
    far = []
    for steps in (1, 150):
        plan = dp_merf.plan(changed(steps=steps), NOTHING, SPACE)
        made = dp_merf.sample(dp_merf.fit(data, plan, SeededForTests(0), seed=0), 300, seed=1)
        found = total(made)[:, :-1] / np.bincount(made.labels)[:, None]
        far.append(np.linalg.norm(found - means))
    assert far[1] < 0.5 * far[0]


def test_classes_lost_in_the_noise_are_not_sampled(records):
    data = records(60, SPACE, labels=np.arange(60) % 2)
    state = dp_merf.fit(data, dp_merf.plan(SETTINGS, NOTHING, SPACE), SeededForTests(0), seed=0)
    assert state["histogram"] == pytest.approx([0.5, 0.5, 0], abs=1e-4)
    made = dp_merf.sample(state, 50, seed=0)
    assert (
        set(made.labels) == {0, 1}
        and made.images.shape == (50, *SPACE.shape)
        and np.all(made.ids == -1)
    )


def test_an_empty_shard_still_makes_a_release(records):
    plan = dp_merf.plan(SETTINGS, Budget(3.0, 1e-5), SPACE)
    state = dp_merf.fit(records(1, SPACE)[:0], plan, SeededForTests(0), seed=0)
    assert all(np.isfinite(array).all() for array in state.values())


def test_same_seed_same_bytes_with_test_noise_and_other_noise_differs(records):
    plan, data = dp_merf.plan(SETTINGS, Budget(3.0, 1e-5), SPACE), records(20, SPACE)
    one, again, other = (
        dp_merf.fit(data, plan, SeededForTests(seed), seed=0) for seed in (1, 1, 2)
    )
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not np.array_equal(one["histogram"], other["histogram"])
    images = [dp_merf.sample(one, 20, seed=seed).images.tobytes() for seed in (3, 3, 4)]
    assert images[0] == images[1] != images[2]


@pytest.mark.parametrize("network", ["mlp", "cnn"])
@pytest.mark.parametrize("shape", [(28, 28, 1), (17, 22, 3)])
def test_networks_make_images_of_the_shape(network, shape):
    made = NormedGenerator(shape=shape, classes=4, network=network)(
        torch.zeros(3, 5), torch.tensor([0, 1, 3])
    )
    assert made.shape == (3, shape[2], *shape[:2]) and made.min() >= 0 and made.max() <= 1
