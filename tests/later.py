"""Asks of accepted parameters what later stages ask, without training.

This covers every plan and account, and the cheap parts of each stage. Whatever fails here must be
refused where it is loaded, or in one sentence.
"""

import contextlib
import json
import math
from collections.abc import Callable, Iterator
from functools import cache
from unittest import mock

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from models import classifiers
from models.generator import NormedGenerator
from models.scattering import Scattering
from models.scattering_basis import DIRECTIONS, Basis
from models.teachers import TEACHERS
from pipelines.config import Params
from pipelines.config.dp import DP_BASELINES, Dpsgd
from pipelines.config.generators import GENERATORS
from pipelines.config.training import BASELINES, Meta
from pipelines.config.values import Block
from pipelines.datasets import partition_schemes, partitions
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.federation.algorithms import base as algorithms
from pipelines.federation.algorithms import pppfl
from pipelines.federation.algorithms.nbafl import Sound
from pipelines.federation.dp import optimisers
from pipelines.federation.dp.account import Account
from pipelines.federation.dp.clipping import Clip
from pipelines.federation.dp.local_steps import Facts, following
from pipelines.federation.dp.noise_schedule import next_factor
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.synthesis import base, dp_moments, neural, warm_start
from pipelines.synthesis.base import Plan
from pipelines.synthesis.release import entry, public_space
from pipelines.training import public_basis

BASIS = public_basis.StoredBasis(
    Basis(np.zeros(1), np.zeros((DIRECTIONS, 1)), np.zeros(DIRECTIONS)), "a basis of no images"
)
# An image of at most so many pixels is small enough to fit a generator to in milliseconds.
TINY = 200


class Failed(AssertionError):
    """Says that a setting was accepted and fails later."""


def everything(params: Params, datasets: list[str], clients: list[str]) -> None:
    """All of it, for these data sets' profiles and these clients.

    The public basis of a shape takes up to a minute, so that another stands for it.

    Raises:
        Failed: with what came, and of what.
    """
    with mock.patch.object(public_basis, "stored_basis", lambda shape: BASIS):
        _everything(params, datasets, clients)


def _everything(params: Params, datasets: list[str], clients: list[str]) -> None:
    for dataset in datasets:
        for name in GENERATORS:
            with _failures(f"generator {name} of {dataset}"):
                _generator(params, dataset, name, clients)
        for name in DP_BASELINES:
            with _failures(f"{name} of {dataset}"):
                _noisy(params, dataset, name, clients)
        for name in ("meta", *BASELINES):
            with _failures(f"{name} of {dataset}"):
                _training(params, dataset, name)
        with _failures(f"network of {dataset}"):
            _network(params.profiles[dataset].classifier, params, dataset)
    with _failures("partition"):
        _partition(
            json.dumps([params.seed, params.prepare.model_dump(), params.partition.model_dump()]),
            params,
        )


@contextlib.contextmanager
def _failures(where: str) -> Iterator[None]:
    """Turns exceptions into Failed. A refusal in one sentence is a good end."""
    try:
        yield
    except UserError as error:
        if len(str(error).splitlines()) != 1:
            raise Failed(f"{where}: {error}") from error
    except Failed:
        raise
    except Exception as error:
        raise Failed(f"{where}: {type(error).__name__} {error}") from error


def _noise(sigma: float, epsilon: float) -> None:
    """Checks that the noise beside a finite epsilon is finite."""
    if math.isfinite(epsilon) and not (0 < sigma < math.inf):
        raise Failed(f"noise {sigma} beside epsilon {epsilon}")


def _generator(params: Params, dataset: str, name: str, clients: list[str]) -> None:
    settings = params.generator(dataset, name)
    for client in clients:
        _planned(name, settings, params.budget(client), params, dataset)
    space = public_space(params.profiles[dataset])
    with torch.device("meta"):
        if hasattr(settings, "generator_network"):
            neural.generator(settings.generator_network, space, latent=settings.latent, seed=0)
        if name == "gan":
            TEACHERS[settings.discriminator_network](space.shape, space.classes, settings.hidden)
        if name == "datalens":
            TEACHERS[settings.teacher_network](space.shape, space.classes, settings.teacher_hidden)
        if name == "dp_merf":
            NormedGenerator(shape=space.shape, classes=space.classes, network=settings.network)


def _planned(
    name: str, settings: Block, budget: tuple[float, float], params: Params, dataset: str
) -> None:
    space = public_space(params.profiles[dataset])
    _once(_plan, name, settings.model_dump_json(), budget, space)


@cache
def _done(action: Callable, *key) -> str | None:
    """Returns what came of it; the cache keeps no exception by itself."""
    try:
        action(*key)
    except UserError as error:
        return str(error)
    return None


def _once(action: Callable, *key) -> None:
    refused = _done(action, *key)
    if refused:
        raise UserError(refused)


def _plan(name: str, settings: str, budget: tuple[float, float], space: base.Space) -> None:
    module = base.load(name)
    block = GENERATORS[name].model_validate_json(settings)
    plan = module.plan(block, Budget(*budget), space)
    for sigma in _sigmas(plan.statement.details):
        _noise(sigma, plan.statement.epsilon)
    if not (plan.statement.mu > 0 and plan.statement.epsilon > 0):
        raise Failed(f"mu {plan.statement.mu}, epsilon {plan.statement.epsilon}")
    json.dumps(
        entry(
            name, module.VERSION, module.IDENTITY, plan, plan.statement, data="", seed=0
        ).statement
    )
    if name == "dp_moments" and math.prod(space.shape) <= TINY and space.classes <= 10:
        _fitted(plan)


class _Still:
    """Draws no noise, and checks the scale that it should have."""

    guarantee = "none"
    source = "none"

    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:
        if not 0 < sigma < 2**62:
            raise Failed(f"discrete noise of deviation {sigma}")
        return np.zeros(shape, np.int64)


def _fitted(plan: Plan) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, *plan.space.shape)).astype(np.uint8)
    labels = rng.integers(0, plan.space.classes, 60)
    state = dp_moments.fit(Images(images, labels, np.arange(60)), plan, _Still(), 0)
    if not all(np.isfinite(array).all() for array in state.values()):
        raise Failed("a state that is not finite")
    dp_moments.sample(state, 5, 0)


def _sigmas(details: object, name: str = "") -> Iterator[float]:
    for key, value in details.items() if isinstance(details, dict) else ():
        yield from _sigmas(value, key)
    for value in details if isinstance(details, list) else ():
        yield from _sigmas(value, name)
    if name in ("sigma", "noise_multiplier", "deviation") and isinstance(details, int | float):
        yield details


def _noisy(params: Params, dataset: str, name: str, clients: list[str]) -> None:
    if params.left_out(dataset, name):
        return
    settings = params.training(dataset, name)
    _network(
        settings.network or params.profiles[dataset].classifier,
        params,
        dataset,
        settings.activation,
    )
    for client in clients:
        account = _account(params, dataset, name, client)
        _noise(account.first, account.epsilon)
        if isinstance(account, Sound):
            _noise(account.noise_stddev, account.epsilon)
        json.dumps(account.cost)
        if account.claim < 0 or math.isnan(account.claim):
            raise Failed(f"a claim of {account.claim}")
        if isinstance(settings, Dpsgd):
            _dpsgd(settings, account)


def _account(params: Params, dataset: str, name: str, client: str) -> Account:
    settings = params.training(dataset, name)
    epsilon, delta = params.budget(client)
    if not settings.warm_start:
        return algorithms.load(name).new_account(epsilon, delta, settings)
    share = settings.warm_start.share
    space = public_space(params.profiles[dataset])
    moments = warm_start.plan(params.generator(dataset, "dp_moments"), epsilon, delta, share, space)
    try:
        return algorithms.load(name).new_account(
            epsilon, warm_start.continuous(delta), settings, warm_start.steps(moments)
        )
    except ValueError as error:
        # The stage says it in the same way.
        raise UserError(str(error)) from None


def _dpsgd(settings: Dpsgd, account: Account) -> None:
    """Checks a step's noise, the optimiser's step on it, and the server's step after the round."""
    account.take(1)
    multiplier = account.noise_multiplier
    clip = Clip(settings)
    deviation = clip.noise_stddev(multiplier)
    _noise(deviation, account.epsilon)
    model = nn.Linear(2, 2)
    spread = deviation / settings.expected_lot
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, spread)
    optimisers.build(model.parameters(), settings).step(spread**2)
    if not 0 < clip.sensitivity < math.inf:
        raise Failed(f"a sensitivity of {clip.sensitivity}")
    for slope, spread in ((0.0, 0.0), (1e-9, 1e9), (1e6, 1e-9), (1.0, 1.0)):
        facts = Facts(2, account.left, 3, slope, 1.0, spread, 2, 1000, multiplier, clip.norm)
        if (
            not 1
            <= following(settings, facts)
            <= max(settings.most_local_steps, settings.local_steps)
        ):
            raise Failed("local steps out of their range")
    if not 0 < next_factor(settings, 1.0, [3.0, 2.0, 1.0, 1.0]) <= 1:
        raise Failed("a factor on the noise out of its range")


def _network(name: str, params: Params, dataset: str, activation: str = "relu") -> None:
    profile = params.profiles[dataset]
    _once(_built, name, tuple(profile.shape), profile.classes, activation)


def _built(name: str, shape: tuple, classes: int, activation: str) -> None:
    if name == "scatter":
        # without its basis, which takes up to a minute
        Scattering(*shape[:2])
        return
    with torch.device("meta"):
        classifiers.build(name, shape=shape, classes=classes, seed=0, activation=activation)


class _Set:
    """Stands for a client's set by its size alone."""

    def __init__(self, size: int):
        self.size = size

    def __len__(self) -> int:
        return self.size

    def stream(self, _: int) -> torch.Generator:
        return torch.Generator().manual_seed(0)

    def subset(self, rows: torch.Tensor) -> int:
        return len(rows)


def _training(params: Params, dataset: str, name: str) -> None:
    settings = params.training(dataset, name)
    if not isinstance(settings, Meta):
        return
    epsilons = {client: params.budget(client)[0] for client in params.clients}
    weights = pppfl.client_weights(
        settings, epsilons, dict.fromkeys(epsilons, params.profiles[dataset].images)
    )
    rates = [pppfl.outer_learning_rate(settings, at) for at in (1, settings.rounds)]
    if not np.isfinite([*weights.values(), *rates]).all() or not math.isclose(
        sum(weights.values()), 1
    ):
        raise Failed(f"weights {weights}, rates {rates}")
    parts = pppfl.support_and_query(
        _Set(min(params.profiles[dataset].images, 10_000)), settings.query_fraction
    )
    if not all(parts):
        raise Failed(f"support and query sets of {parts} images")


def _partition(key: str, params: Params) -> None:
    _once(_cut, key, _Held(params))


class _Held:
    """Holds parameters that the cache takes as equal. The key says what of them counts."""

    def __init__(self, params: Params):
        self.params = params

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return True


def _cut(_: str, held: _Held) -> None:
    params = held.params
    rng = np.random.default_rng(0)
    images, labels = load_digits(return_X_y=True)
    fractions = [params.prepare.test_fraction, params.prepare.public_fraction]
    _, _, rest = partitions.split(labels, fractions, rng)
    pool = Images(
        images[rest].reshape(-1, 8, 8, 1).astype(np.uint8), labels[rest].astype(np.int64), rest
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_schemes, "TRIES", 100)
        shards = partitions.cut(pool, params.partition, rng)
    for shard in shards.values():
        if not (len(shard.train) and len(shard.validation) and len(shard.test)):
            raise Failed("an empty part of a shard")
