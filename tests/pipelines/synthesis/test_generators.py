"""Tests what all generators promise (registry), what the neural ones share, and the one that is not
private.
"""

import inspect
import math

import numpy as np
import pytest
from project import ROOT

from pipelines import config
from pipelines.config.generators import GENERATORS, WITH_CLASSIFIER, Gan
from pipelines.errors import UserError
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy, SeededForTests
from pipelines.synthesis import base, gan, neural, release

MLPS = {"generator_network": "mlp", "discriminator_network": "mlp", "wrong_labels": False}
SETTINGS = Gan(**MLPS, steps=5, batch=4, learning_rate=1e-3, hidden=9, latent=3)


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_every_configured_generator_has_the_three_functions_and_the_two_constants(name):
    module = base.load(name)
    arguments = {
        "plan": ["settings", "budget", "space"],
        "fit": ["shard", "plan", "noise", "seed", "where"],
        "sample": ["state", "count", "seed"],
    }
    for function, expected in arguments.items():
        assert list(inspect.signature(getattr(module, function)).parameters) == expected
    assert isinstance(module.VERSION, int) and isinstance(module.KNOWN_FAILURES, str)


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_a_generator_that_releases_a_classifier_is_named_so(name):
    """The list of names decides what an export holds, and what the guard lets out."""
    module = base.load(name)
    is_named = name in WITH_CLASSIFIER
    assert hasattr(module, "classifier") == hasattr(module, "classifier_weights") == is_named
    if is_named:
        parameters = inspect.signature(module.classifier_weights).parameters
        assert list(parameters) == ["state", "settings"]


def test_an_unknown_generator_is_refused():
    with pytest.raises(KeyError):
        base.load("os")


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_gan_claims_no_privacy_whatever_the_budget(epsilon, small_space):
    plan = gan.plan(SETTINGS, Budget(epsilon, 1e-5), small_space)
    assert plan.statement.epsilon == math.inf and plan.statement.guarantee == "none"
    assert "NOT PRIVATE" in plan.lines[0]
    assert plan.statement.sentence.startswith("NO PRIVACY GUARANTEE")


@pytest.fixture
def state(records, small_space):
    return gan.fit(
        records(20, small_space),
        gan.plan(SETTINGS, Budget(1.0, 1e-5), small_space),
        OsEntropy(),
        seed=1,
    )


def test_gan_repeats_under_its_seed_and_learns_something(state, records, small_space):
    plan = gan.plan(SETTINGS, Budget(1.0, 1e-5), small_space)
    again, other = (
        gan.fit(records(20, small_space), plan, SeededForTests(0), seed=seed) for seed in (1, 2)
    )
    assert all(np.array_equal(state[name], again[name]) for name in state)
    assert not np.array_equal(state["layers.0.weight"], other["layers.0.weight"])
    fresh = neural.state(neural.generator("mlp", small_space, latent=3, hidden=9, seed=1))
    assert not np.array_equal(state["layers.0.weight"], fresh["layers.0.weight"])


def test_gan_approaches_its_records(records, small_space):
    """Training on white images makes brighter fakes: the generator's gradient has the right sign."""
    data = records(20, small_space)
    data.images[:] = 255
    settings = SETTINGS.model_copy(update={"steps": 60, "learning_rate": 1e-2})
    trained = gan.fit(data, gan.plan(settings, Budget(1.0, 1e-5), small_space), OsEntropy(), seed=1)
    fresh = neural.state(neural.generator("mlp", small_space, latent=3, hidden=9, seed=1))
    bright, grey = (
        neural.sample(weights, 50, seed=0).pixels.mean() for weights in (trained, fresh)
    )
    assert bright > grey + 0.2


@pytest.mark.parametrize("generator", ["conv", "paper"])
@pytest.mark.parametrize("discriminator", ["compact", "paper"])
def test_gan_with_convolutions(generator, discriminator, records, small_space):
    networks = {
        "generator_network": generator,
        "discriminator_network": discriminator,
        "wrong_labels": True,
    }
    plan = gan.plan(SETTINGS.model_copy(update=networks), Budget(1.0, 1e-5), small_space)
    trained = gan.fit(records(20, small_space), plan, OsEntropy(), seed=1)
    fresh = neural.state(neural.generator(generator, small_space, latent=3, hidden=9, seed=1))
    assert all(np.isfinite(array).all() for array in trained.values())
    assert any(not np.array_equal(trained[name], fresh[name]) for name in fresh)
    assert gan.sample(trained, 7, seed=0).images.shape == (7, *small_space.shape)


def test_a_state_rebuilds_its_network_and_samples_repeat(state, small_space):
    data = neural.sample(state, 300, seed=4)
    assert data.images.shape == (300, *small_space.shape) and data.images.dtype == np.uint8
    assert set(data.labels) == {0, 1, 2}
    assert np.all(data.ids == -1)
    np.testing.assert_array_equal(data.images, neural.sample(state, 300, seed=4).images)
    assert not np.array_equal(data.images, neural.sample(state, 300, seed=5).images)


def test_samples_follow_the_histogram(state):
    skewed = {**state, "histogram": np.array([0.0, 1.0, 0.0])}
    assert set(neural.sample(skewed, 50, seed=0).labels) == {1}


def test_a_state_holds_weights_and_public_facts_only(state):
    weights = {name for name in state if name.startswith("layers.")}
    assert set(state) == weights | set(neural.PUBLIC)


@pytest.mark.parametrize("name", ["dp_moments", "dp_merf", "dp_teacher"])
def test_a_delta_too_small_for_64_bits_is_refused_in_the_plan(name):
    """Public numbers decide, before anything is charged.

    1e-7 fits 28x28 images, and 1e-10 does not.
    """
    params = config.load(ROOT / "params.yaml")
    settings, space = (
        params.generator("mnist", name),
        release.public_space(params.profiles["mnist"]),
    )
    plan = base.load(name).plan
    plan(settings, Budget(10.0, 1e-7), space)
    with pytest.raises(UserError, match="The 'delta' parameter of privacy must be larger"):
        plan(settings, Budget(10.0, 1e-10), space)
