"""Draws of clients for benchmarks: their shards, and what they released.

Clients get a Dirichlet part of the training images each. Some federate: each releases a synthetic set
within its epsilon, with noise from the operating system. Three are newcomers, which released nothing.
A regime says how many clients there are, what they hold, their epsilons, and whether they release
together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np
from torch import nn

from benchmarks import joint_sums
from benchmarks.common import digest
from pipelines import seeds
from pipelines.config import Params
from pipelines.config.data import Partition
from pipelines.datasets import labelled_images, partitions
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.datasets.shards import Shard
from pipelines.federation.core.task import Task
from pipelines.paths import SCRATCH
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import base, release
from pipelines.synthesis.joint_plan import Group
from pipelines.training import classifier
from pipelines.training.pool import Pool
from pipelines.training.tensors import device

NAME = "client_draws"
GENERATOR = "dp_moments"
TOGETHER = "joint_moments"
DELTA = 1e-5
ALPHA = 0.5
NEWCOMERS = ("n0", "n1", "n2")
# In development: training images that stand for the global test set.
HELD_OUT = {"digits": 200}
USUALLY_HELD_OUT = 5000


@dataclass(frozen=True)
class Regime:
    """Describes the clients of a draw.

    Attributes:
        count: how many federate.
        records: how many each client has on average, of all three parts; None: all are dealt.
        least: how many it has at least.
        epsilons: of the federated clients, in turn.
        images: how many each releases; None: as the profile says.
        scored: how many federated clients are scored; None: all.
        joint: they make one release together, at one epsilon. How many may collude, the settings say.
    """

    count: int = 5
    records: int | None = None
    least: int = 10
    epsilons: tuple[float, ...] = (10.0,)
    images: int | None = None
    scored: int | None = None
    joint: bool = False

    @property
    def generator(self) -> str:
        """Returns the name of the generator of the released sets."""
        return TOGETHER if self.joint else GENERATOR

    @property
    def federated(self) -> tuple[str, ...]:
        """Returns the names of the clients that federate."""
        return tuple(f"c{number}" for number in range(self.count))

    @property
    def budgets(self) -> dict[str, float]:
        """Returns {federated client: its epsilon}."""
        return dict(zip(self.federated, cycle(self.epsilons)))


USUAL = "5"
TWENTY = Regime(count=20, records=600, least=60, images=500, scored=10)
FIFTY = Regime(count=50, records=200, least=20, images=200, scored=10)
REGIMES = {
    USUAL: Regime(),
    "mixed": Regime(epsilons=(1.0, 3.0, 5.0, 8.0, 10.0)),
    "5-at-1": Regime(epsilons=(1.0,)),
    "5-at-1-joint": Regime(epsilons=(1.0,), joint=True),
    "20x600": TWENTY,
    "20x600-at-1": replace(TWENTY, epsilons=(1.0,)),
    "20x600-at-1-joint": replace(TWENTY, epsilons=(1.0,), joint=True),
    "50x200": FIFTY,
    "50x200-at-1": replace(FIFTY, epsilons=(1.0,)),
    "50x200-at-1-joint": replace(FIFTY, epsilons=(1.0,), joint=True),
}


@dataclass(frozen=True)
class ClientDraw:
    """Holds one draw of clients.

    Attributes:
        params: of the project.
        dataset: its name.
        seed: of the draw.
        regime: what clients there are.
        shards: {client: its private records}.
        sets: {federated client: its released set}.
        everyone: the global test set.
    """

    params: Params
    dataset: str
    seed: int
    regime: Regime
    shards: dict[str, Shard]
    sets: dict[str, Images]
    everyone: Images

    def build(self) -> nn.Module:
        """Returns a fresh network, the same each time."""
        profile = self.params.profiles[self.dataset]
        return classifier.new(profile, seeds.derive(self.seed, "init"), device(self.params.device))

    @property
    def released(self) -> Images:
        """Returns all released images."""
        return concatenate([self.sets[client] for client in sorted(self.sets)])

    @property
    def pool(self) -> Pool:
        """Returns all released images, with the public warps."""
        warps = self.params.profiles[self.dataset].augmentation
        return Pool(self.released, warps, device(self.params.device))

    @property
    def records(self) -> dict[str, Images]:
        """Returns {federated client: its private train part}."""
        return {client: self.shards[client].train for client in self.regime.federated}

    def own_test(self, client: str) -> Images:
        """Returns what a client is scored on: its test part, of small clients the validation part, too.

        Nothing is selected on either.
        """
        shard = self.shards[client]
        return concatenate([shard.test, shard.validation]) if self.regime.records else shard.test

    @property
    def task(self) -> Task:
        """Returns the task of the federated clients, on their released sets."""
        warps = self.params.profiles[self.dataset].augmentation
        return Task(
            self.sets, self.build, warps, self.regime.budgets, seeds.derive(self.seed, NAME)
        )


def draw(
    params: Params,
    dataset: str,
    seed: int,
    train: Images,
    test: Images | None,
    regime: Regime = REGIMES[USUAL],
) -> ClientDraw:
    """Deals the clients and makes their releases.

    Args:
        params: of the project.
        dataset: its name.
        seed: of the draw.
        train: training images.
        test: the global test set; None: it is held out of the training images.
        regime: what clients there are.
    """
    rng = np.random.default_rng(seeds.derive(seed, NAME, dataset))
    development = test is None
    if development:
        rows = rng.permutation(len(train))
        count = HELD_OUT.get(dataset, USUALLY_HELD_OUT)
        test = train[rows[:count]]
        train = train[rows[count:]]
    shards = partitions.cut(train, partition(params, regime), rng)
    folder = f"{dataset}-{seed}-{conditions(params, dataset, regime)}{'-development' * development}"
    places = {client: SCRATCH / NAME / folder / f"{client}.npz" for client in regime.federated}
    # a later call finds the release again
    missing = [client for client, path in places.items() if not path.exists()]
    if regime.joint and missing:
        made = _released_together(params, dataset, shards, seed, regime)
        # sets of two releases never lie side by side
        for path in places.values():
            path.unlink(missing_ok=True)
    else:
        made = _released_apart(params, dataset, shards, seed, regime, missing)
    for client, images in made:
        places[client].parent.mkdir(parents=True, exist_ok=True)
        images.save(places[client])
    sets = {client: labelled_images.load(path) for client, path in places.items()}
    return ClientDraw(params, dataset, seed, regime, shards, sets, test)


def partition(params: Params, regime: Regime) -> Partition:
    """Returns how the clients are dealt."""
    content = {
        **params.partition.model_dump(),
        "scheme": "dirichlet",
        "alpha": ALPHA,
        "small": None,
        "clients": [*regime.federated, *NEWCOMERS],
        "records_per_client": regime.records,
        "min_records": regime.least,
    }
    return Partition.model_validate(content)


def conditions(params: Params, dataset: str, regime: Regime = REGIMES[USUAL]) -> str:
    """Returns a digest of what shards and releases follow from, beside the seed and the images.

    Args:
        params: of the project.
        dataset: its name.
        regime: what clients there are.
    """
    facts = [
        partition(params, regime).model_dump(),
        regime.generator,
        base.load(regime.generator).VERSION,
        params.generator(dataset, regime.generator).model_dump(),
        regime.images or params.profiles[dataset].images,
        regime.epsilons,
        DELTA,
    ]
    return digest(facts)


def _released_apart(
    params: Params,
    dataset: str,
    shards: dict[str, Shard],
    seed: int,
    regime: Regime,
    clients: list[str],
) -> Iterator[tuple[str, Images]]:
    """Yields the set that each of these clients releases alone."""
    for client in clients:
        records = shards[client].train
        epsilon = regime.budgets[client]
        yield client, released(params, dataset, records, seed, epsilon, regime.images)


def _released_together(
    params: Params,
    dataset: str,
    shards: dict[str, Shard],
    seed: int,
    regime: Regime,
) -> Iterator[tuple[str, Images]]:
    """Yields a set for each federated client, from one release of all of them."""
    parts = [shards[client].train for client in regime.federated]
    settings = params.generator(dataset, TOGETHER)
    group = Group(regime.count, settings.number_colluding(regime.count))
    space = release.public_space(params.profiles[dataset], sum(map(len, parts)))
    (epsilon,) = regime.epsilons
    budget = Budget(epsilon, DELTA)
    state = joint_sums.fitted(TOGETHER, settings, budget, space, group, parts, seed)
    count = regime.images or params.profiles[dataset].images
    for client in regime.federated:
        yield client, base.load(TOGETHER).sample(state, count, seeds.derive(seed, client))


def released(
    params: Params,
    dataset: str,
    records: Images,
    seed: int,
    epsilon: float,
    count: int | None = None,
) -> Images:
    """Releases a client's synthetic set.

    Args:
        params: of the project.
        dataset: its name.
        records: the client's private train part.
        seed: of everything random but the noise.
        epsilon: of the release.
        count: how many images; None: as the profile says.
    """
    generator = base.load(GENERATOR)
    space = release.public_space(params.profiles[dataset])
    plan = generator.plan(params.generator(dataset, GENERATOR), Budget(epsilon, DELTA), space)
    state = generator.fit(records, plan, OsEntropy(), seed=seed)
    return generator.sample(state, count or params.profiles[dataset].images, seed)
