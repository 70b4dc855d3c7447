"""Tests the start of a joint run: its cost in the run's account, and that nothing else of the
records passes.
"""

import math

import numpy as np
import pytest

from models import classifiers
from pipelines.config.generators import WarmStart
from pipelines.datasets.labelled_images import Images
from pipelines.privacy import accounting
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import SeededForTests
from pipelines.synthesis import warm_start

DELTA = 1e-5


@pytest.mark.parametrize("share", [0.1, 0.4, 0.9])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 10.0, 40.0])
def test_a_share_costs_its_part_of_mu_squared(moments_settings, small_space, share, epsilon):
    plan = warm_start.plan(moments_settings(), epsilon, DELTA, share, small_space)
    (step,) = warm_start.steps(plan)
    mu = Budget(epsilon, DELTA).mu
    assert (step.sampling_rate, step.count) == (1.0, 1)
    assert step.noise_multiplier**-2 == pytest.approx(share * mu**2, rel=1e-6)
    sigmas = plan.statement.details["sigma"]
    assert accounting.compose([1 / sigma for sigma in sigmas]) == pytest.approx(
        1 / step.noise_multiplier, rel=1e-9
    )


def test_no_epsilon_no_noise(moments_settings, small_space):
    plan = warm_start.plan(moments_settings(), math.inf, DELTA, 0.4, small_space)
    assert warm_start.steps(plan)[0].noise_multiplier == 0.0


def test_settings_for_little_budget_follow_what_the_share_is_worth(moments_settings, small_space):
    low = {"below": 3.0, "residual_clip": 1.0, "first_share": 0.5, "inflation": 9.0}
    settings = moments_settings(low_epsilon=low)
    asked = [
        warm_start.plan(settings, 5.0, DELTA, share, small_space).settings.inflation
        for share in (0.9, 0.1)
    ]
    assert asked == [settings.inflation, 9.0]


@pytest.fixture
def start(moments_settings, small_space):
    """Returns a factory of what `trained` gives for records made from a seed."""

    def start(seed: int):
        rng = np.random.default_rng(seed)
        labels = np.arange(200) % small_space.classes
        noise = rng.integers(0, 60, (200, *small_space.shape))
        pixels = (noise + 180 * (labels % 2)[:, None, None, None]).astype(np.uint8)
        data = {name: Images(pixels, labels, np.arange(200)) for name in "ab"}
        plans = {
            name: warm_start.plan(moments_settings(), 20.0, DELTA, 0.5, small_space)
            for name in "ab"
        }
        sources = {name: SeededForTests(number) for number, name in enumerate("ab")}
        settings = WarmStart(images=100, epochs=10, batch=20, learning_rate=1e-2)
        model = classifiers.build(
            "mlp", shape=small_space.shape, classes=small_space.classes, seed=0
        )
        return warm_start.trained(model, settings, None, data, plans, sources, 7)

    return start


def same(one, two) -> bool:
    return all(np.array_equal(one[name], two[name]) for name in one)


def test_the_start_repeats_and_says_what_was_sent(start, small_space):
    (one, sent), (again, _), (other, _) = start(0), start(0), start(1)
    assert sent == 2 * 100 * math.prod(small_space.shape)
    assert same(one, again) and not same(one, other)


def test_it_follows_from_the_releases_alone(start, monkeypatch):
    """With the releases of other records, the start is theirs."""
    released = []
    honest = warm_start.dp_moments.fit
    monkeypatch.setattr(
        warm_start.dp_moments, "fit", lambda *asked: released.append(honest(*asked)) or released[-1]
    )
    theirs, _ = start(1)
    monkeypatch.setattr(warm_start.dp_moments, "fit", lambda *asked: released.pop(0))
    assert same(start(0)[0], theirs)
