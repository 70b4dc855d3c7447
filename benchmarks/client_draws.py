"""Draws of clients for benchmarks: their shards, what they released, and the models they are handed.

Eight clients get a Dirichlet part of the training images each. Five of them federate: each releases a
synthetic set within epsilon 10, with noise from the operating system. Three are newcomers, which
released nothing.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from torch import nn

from pipelines import methods, seeds
from pipelines.config import Params
from pipelines.config.data import Client, Partition
from pipelines.datasets import labelled_images, partitions
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.datasets.shards import Shard
from pipelines.federation import noisy_training
from pipelines.federation.core.task import Task
from pipelines.federation.inprocess import federate
from pipelines.federation.noisy_run import NoisyRun
from pipelines.files import standard
from pipelines.paths import SCRATCH
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import base, release, warm_start
from pipelines.training import classifier
from pipelines.training.pool import Pool
from pipelines.training.tensors import State, state_of

NAME = "client_draws"
GENERATOR = "dp_moments"
EPSILON = 10.0
DELTA = 1e-5
ALPHA = 0.5
FEDERATED = ("c0", "c1", "c2", "c3", "c4")
NEWCOMERS = ("n0", "n1", "n2")
# In development: training images that stand for the global test set.
HELD_OUT = {"digits": 200}
USUALLY_HELD_OUT = 5000
NOISY = ("dpsgd_warm",)


@dataclass(frozen=True)
class ClientDraw:
    """Holds one draw of clients.

    Attributes:
        params: of the project.
        dataset: its name.
        seed: of the draw.
        shards: {client: its private records}.
        sets: {federated client: its released set}.
        everyone: the global test set.
    """

    params: Params
    dataset: str
    seed: int
    shards: dict[str, Shard]
    sets: dict[str, Images]
    everyone: Images

    def build(self) -> nn.Module:
        """Returns a fresh network, the same each time."""
        profile = self.params.profiles[self.dataset]
        return classifier.new(profile, seeds.derive(self.seed, "init"))

    @property
    def released(self) -> Images:
        """Returns all released images."""
        return concatenate([self.sets[client] for client in sorted(self.sets)])

    @property
    def pool(self) -> Pool:
        """Returns all released images, with the public warps."""
        return Pool(self.released, self.params.profiles[self.dataset].augmentation)

    @property
    def records(self) -> dict[str, Images]:
        """Returns {federated client: its private train part}."""
        return {client: self.shards[client].train for client in FEDERATED}

    @property
    def task(self) -> Task:
        """Returns the task of the federated clients, on their released sets."""
        warps = self.params.profiles[self.dataset].augmentation
        epsilons = dict.fromkeys(self.sets, EPSILON)
        return Task(self.sets, self.build, warps, epsilons, seeds.derive(self.seed, NAME))


def draw(params: Params, dataset: str, seed: int, train: Images, test: Images | None) -> ClientDraw:
    """Deals the clients and makes their releases.

    Args:
        params: of the project.
        dataset: its name.
        seed: of the draw.
        train: training images.
        test: the global test set; None: it is held out of the training images.
    """
    rng = np.random.default_rng(seeds.derive(seed, NAME, dataset))
    development = test is None
    if development:
        rows = rng.permutation(len(train))
        count = HELD_OUT.get(dataset, USUALLY_HELD_OUT)
        test = train[rows[:count]]
        train = train[rows[count:]]
    shards = partitions.cut(train, partition(params), rng)
    folder = f"{dataset}-{seed}-{conditions(params, dataset)}{'-development' * development}"
    sets = released_sets(params, dataset, shards, seed, folder)
    return ClientDraw(params, dataset, seed, shards, sets, test)


def partition(params: Params) -> Partition:
    """Returns how the clients are dealt."""
    changes = {"scheme": "dirichlet", "alpha": ALPHA, "small": None}
    clients = [*FEDERATED, *NEWCOMERS]
    content = {**params.partition.model_dump(), **changes, "clients": clients}
    return Partition.model_validate(content)


def conditions(params: Params, dataset: str) -> str:
    """Returns a digest of all that shards and releases follow from, beside the seed and the images."""
    facts = [
        partition(params).model_dump(),
        GENERATOR,
        base.load(GENERATOR).VERSION,
        params.generator(dataset, GENERATOR).model_dump(),
        params.profiles[dataset].images,
        EPSILON,
        DELTA,
    ]
    return hashlib.sha256(json.dumps(standard(facts)).encode()).hexdigest()[:12]


def released_sets(
    params: Params, dataset: str, shards: dict[str, Shard], seed: int, folder: str
) -> dict[str, Images]:
    """Returns what the federated clients released. A later call under the same folder finds it again.

    Args:
        params: of the project.
        dataset: its name.
        shards: {client: its private records}.
        seed: of the draw.
        folder: names the draw among all others.
    """
    sets = {}
    for client in FEDERATED:
        path = SCRATCH / NAME / folder / f"{client}.npz"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            released(params, dataset, shards[client].train, seed).save(path)
        sets[client] = labelled_images.load(path)
    return sets


def released(params: Params, dataset: str, records: Images, seed: int) -> Images:
    """Releases a client's synthetic set.

    Args:
        params: of the project.
        dataset: its name.
        records: the client's private train part.
        seed: of everything random but the noise.
    """
    generator = base.load(GENERATOR)
    space = release.public_space(params.profiles[dataset])
    plan = generator.plan(params.generator(dataset, GENERATOR), Budget(EPSILON, DELTA), space)
    state = generator.fit(records, plan, OsEntropy(), seed=seed)
    return generator.sample(state, params.profiles[dataset].images, seed)


def handed_out(clients: ClientDraw, start: str) -> State:
    """Trains the model that the clients are handed: untrained, or of a federated method."""
    if start == "random":
        return state_of(clients.build())
    if start in NOISY:
        return noisy(clients, start)
    settings = clients.params.training(clients.dataset, methods.block(start))
    return federate(start, clients.task, settings).models[-1]


def noisy(clients: ClientDraw, method: str) -> State:
    """Trains a model with noise on the federated clients' private records, within EPSILON each."""
    budgets = {client: Client(epsilon=EPSILON) for client in FEDERATED}
    privacy = clients.params.privacy.model_copy(update={"delta": DELTA, "noise": "os_entropy"})
    changes = {"clients": budgets, "privacy": privacy, "seed": clients.seed}
    params = clients.params.model_copy(update=changes)
    start = warm_start.joint_start(params, clients.dataset, method)
    run = NoisyRun(params, clients.dataset, method, start)
    task = run.client_task(clients.records)
    first = partial(start.weights, run.build(), clients.records, task.sources)
    with TemporaryDirectory() as folder:
        noisy_training.train(run.algorithm, task, run.settings, first, Path(folder))
        model, _ = noisy_training.read(Path(folder))
    return model
