"""Tests that every algorithm trains the `scatter` network, and sends its linear layer alone."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from project import ROOT

from models import classifiers
from pipelines import config, methods
from pipelines.config.data import Augmentation
from pipelines.config.dp import DP_BASELINES
from pipelines.config.training import BASELINES
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import base
from pipelines.federation.core import rounds
from pipelines.federation.core.task import Task
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.federation.dp.public import Public
from pipelines.federation.inprocess import engine_of, federate
from pipelines.privacy import layerwise
from pipelines.privacy.noise import SeededForTests

WITHOUT_ROUNDS = (*methods.AT_HOME, *methods.AT_ONE_PLACE)
PLAIN = ["pppfl", *(name for name in BASELINES if name not in WITHOUT_ROUNDS)]
BUILD = partial(classifiers.build, "scatter", shape=(8, 8, 1), classes=3, seed=0)
WEIGHT = "2.weight"


def records(count: int, seed: int) -> Images:
    """Returns stripes of three widths, with noise."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    waves = np.sin(np.arange(8) * (1 + labels[:, None])) * 60 + 120
    pixels = waves[:, None, :, None] + rng.integers(0, 30, (count, 8, 8, 1))
    return Images(pixels.astype(np.uint8), labels, np.arange(count))


@pytest.fixture(scope="module")
def params() -> config.Params:
    loaded = config.load(ROOT / "params.yaml")
    profile = loaded.profiles["digits"].model_copy(update={"classifier": "scatter"})
    return loaded.model_copy(update={"profiles": {**loaded.profiles, "digits": profile}})


def settings_of(params: config.Params, method: str):
    """Returns the method's settings on the network, of two rounds and a short warm start."""
    settings = params.training("digits", methods.block(method))
    has_rounds = "rounds" in type(settings).model_fields
    changes = {"rounds": 2} if has_rounds else {"steps": 40}
    if method not in DP_BASELINES and getattr(settings, "warm_start", None):
        changes["warm_start"] = settings.warm_start.model_copy(update={"steps": 40})
    return settings.model_copy(update=changes)


@pytest.mark.parametrize("warped", [False, True], ids=["as they are", "warped"])
@pytest.mark.parametrize("method", PLAIN)
def test_every_algorithm_trains_it(params, method, warped):
    data = {"a": records(30, 0), "b": records(36, 1)}
    task = Task(
        data=data,
        build=BUILD,
        augmentation=Augmentation(noise=0.01) if warped else None,
        epsilons=dict.fromkeys(data, 1.0),
        seed=0,
    )
    history = federate(method, task, settings_of(params, method))
    last = history.models[-1]
    assert set(last) == {WEIGHT} and last[WEIGHT].shape == (3, 215)
    assert np.isfinite(last[WEIGHT]).all() and last[WEIGHT].any()


@pytest.mark.parametrize("method", DP_BASELINES)
def test_every_noisy_algorithm_trains_it(params, method):
    settings = settings_of(params, method)
    algorithm = base.load(method)
    data = {"a": records(60, 0), "b": records(60, 1)}
    task = NoisyTask(
        build=BUILD,
        data=data,
        accounts={client: algorithm.new_account(8.0, 1e-5, settings) for client in data},
        sources={client: SeededForTests(number) for number, client in enumerate(data)},
        public=Public(BUILD(), records(30, 2)),
    )
    states = {client: algorithm.client(task, client, settings) for client in data}
    engine = engine_of(algorithm, states, settings)
    state = algorithm.server(task, settings)
    history = rounds.run(state, algorithm.server_step, engine, rounds=2, name=method)
    assert set(history.models[-1]) == {WEIGHT}
    assert np.isfinite(history.models[-1][WEIGHT]).all() and history.models[-1][WEIGHT].any()


def test_a_message_is_the_linear_layer(params):
    settings = settings_of(params, "fedavg")
    algorithm = base.load("fedavg")
    task = Task({"a": records(30, 0)}, BUILD, None, {"a": 1.0}, 0)
    state = algorithm.server(task, settings)
    payload = rounds.Payload(state.weights, {"round": 1})
    answer = algorithm.client_update(payload, algorithm.client(task, "a", settings), settings)
    assert {name: array.nbytes for name, array in answer.arrays.items()} == {WEIGHT: 4 * 3 * 215}


def test_fixed_features_train_the_same_model_as_images_do(params):
    """Images that are not warped are transformed once."""
    settings = settings_of(params, "fedavg")
    task = Task({"a": records(30, 0)}, BUILD, None, {"a": 1.0}, 0)
    algorithm = base.load("fedavg")
    once = algorithm.client(task, "a", settings)
    assert once.images.shape == (30, 214)
    pixels = torch.from_numpy(task.data["a"].pixels).permute(0, 3, 1, 2)
    anew = replace(once, model=BUILD(), images=pixels)
    payload = rounds.Payload(task.start(), {"round": 1})
    one, other = (algorithm.client_update(payload, client, settings) for client in (once, anew))
    np.testing.assert_allclose(one.arrays[WEIGHT], other.arrays[WEIGHT], rtol=1e-3, atol=1e-3)


def test_its_records_gradients_are_exact_and_cheap():
    model = BUILD()
    torch.nn.init.normal_(model[-1].weight, generator=torch.Generator().manual_seed(0))
    assert layerwise.serves(model)
    data = records(5, 0)
    pixels = torch.from_numpy(data.pixels).permute(0, 3, 1, 2)
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    (part,) = layerwise.parts(model, weights, pixels, torch.from_numpy(data.labels))
    # |p - y| sqrt(|r|^2 + .3^2)
    wrong = model(pixels).softmax(1) - torch.eye(3)[data.labels]
    norms = wrong.norm(dim=1) * (model[0](pixels).square().sum(1) + 0.09).sqrt()
    torch.testing.assert_close(part.squares().sqrt().float(), norms.detach(), rtol=1e-4, atol=1e-6)


def test_a_module_that_does_not_declare_it_is_not_taken_for_fixed():
    declared = SimpleNamespace(treats_records_alone=True, parameters=lambda: iter(()))
    assert layerwise._is_fixed(declared)
    with_weights = SimpleNamespace(treats_records_alone=True, parameters=lambda: iter((1,)))
    assert not layerwise._is_fixed(with_weights)
    assert not layerwise._is_fixed(torch.nn.BatchNorm1d(3, affine=False))
