"""What a federation is worth to each client: starts, recipes and numbers of labels, own and everybody's images.

    python -m benchmarks.personalisation --images ../shared/datasets            # hours; resumes
    python -m benchmarks.personalisation --datasets digits --seeds 0 --labels 8 64
    python -m benchmarks.personalisation --development --datasets digits        # seed 100, no test image

Eight clients get a Dirichlet 0.5 part of the training images each. Five of them federate: each releases
a `dp_moments` set within epsilon 10, with noise from the operating system. Three are newcomers, which
released nothing. Newcomers label 8 to 250 of their records; federated clients have all theirs.

Each model is read twice. On a client's own test part its class shares are added to the logits; on the
global test set they are not, and for weights that were trained without the prior they are taken off
(`local` with its prior off is the bar there). The last iterate is scored, and nothing is selected.
With `--development` the global images are held out of the training images, and no test image is read.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from benchmarks.common import RESULTS, cells, cpu_seconds, has, keep, show
from pipelines import config, seeds
from pipelines.config.data import Partition
from pipelines.config.training import Replay
from pipelines.datasets import labelled_images, partitions
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.datasets.shards import Shard
from pipelines.federation.core.task import Task
from pipelines.federation.home.personal import Personal, balanced, prior_off
from pipelines.federation.inprocess import federate
from pipelines.paths import SCRATCH
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import base, release
from pipelines.training import classifier, replay
from pipelines.training.replay import Pool
from pipelines.training.tensors import State, state_of, with_state

NAME = "personalisation"
GENERATOR = "dp_moments"
EPSILON = 10.0
DELTA = 1e-5
FEDERATED = ("c0", "c1", "c2", "c3", "c4")
NEWCOMERS = ("n0", "n1", "n2")
ALL = "all"
DEVELOPMENT_SEED = 100
HELD_OUT = {"digits": 200}
USUALLY_HELD_OUT = 5000
STARTS = ("random", "pooled", "fedavg", "pppfl_paper")
RECIPES = ("plain", "replay", "prior")


@dataclass(frozen=True)
class World:
    """Holds one draw of clients and what they released.

    Attributes:
        dataset: its name.
        seed: of the draw.
        shards: {client: its private records}.
        sets: {federated client: its released set}.
        everyone: the global test set.
    """

    params: config.Params
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
    def pool(self) -> Pool:
        """Returns all released images, with the public warps."""
        data = concatenate([self.sets[client] for client in sorted(self.sets)])
        return Pool(data, self.params.profiles[self.dataset].augmentation)

    @property
    def task(self) -> Task:
        """Returns the task of the federated clients, on their released sets."""
        warps = self.params.profiles[self.dataset].augmentation
        epsilons = dict.fromkeys(self.sets, EPSILON)
        return Task(self.sets, self.build, warps, epsilons, seeds.derive(self.seed, NAME))


def world(
    params: config.Params, dataset: str, seed: int, train: Images, test: Images | None
) -> World:
    """Deals the clients and makes their releases.

    Args:
        params: of the project.
        dataset: its name.
        seed: of the draw.
        train: training images.
        test: the global test set; None: it is held out of the training images.
    """
    rng = np.random.default_rng(seeds.derive(seed, NAME, dataset))
    if test is None:
        rows = rng.permutation(len(train))
        count = HELD_OUT.get(dataset, USUALLY_HELD_OUT)
        test, train = train[rows[:count]], train[rows[count:]]
    asked = {
        "clients": [*FEDERATED, *NEWCOMERS],
        "small": None,
        "scheme": "dirichlet",
        "alpha": 0.5,
    }
    partition = Partition.model_validate({**params.partition.model_dump(), **asked})
    shards = partitions.cut(train, partition, rng)
    sets = released_sets(params, dataset, shards, seed)
    return World(params, dataset, seed, shards, sets, test)


def released_sets(
    params: config.Params, dataset: str, shards: dict[str, Shard], seed: int
) -> dict[str, Images]:
    """Returns what the federated clients released, which a later call finds again.

    Args:
        params: of the project.
        dataset: its name.
        shards: {client: its private records}.
        seed: of the draw.
    """
    sets = {}
    for client in FEDERATED:
        path = SCRATCH / NAME / f"{dataset}-{seed}-{client}.npz"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            released(params, dataset, shards[client].train, seed).save(path)
        sets[client] = labelled_images.load(path)
    return sets


def released(params: config.Params, dataset: str, records: Images, seed: int) -> Images:
    """Releases a client's synthetic set."""
    generator = base.load(GENERATOR)
    space = release.public_space(params.profiles[dataset])
    plan = generator.plan(params.generator(dataset, GENERATOR), Budget(EPSILON, DELTA), space)
    state = generator.fit(records, plan, OsEntropy(), seed=seed)
    return generator.sample(state, params.profiles[dataset].images, seed)


def start_of(here: World, name: str) -> State:
    """Trains the model that the clients are handed."""
    if name == "random":
        return state_of(here.build())
    if name == "pooled":
        return pooled(here)
    settings = here.params.training(here.dataset, name)
    return federate(name, here.task, settings).models[-1]


def pooled(here: World) -> State:
    """Trains one model on all released images: 1,200 steps of Adam, one cycle."""
    data = concatenate([here.sets[client] for client in sorted(here.sets)])
    model = here.build()
    batch = 128
    epochs = max(1, round(1200 * batch / len(data)))
    classifier.fit(
        model,
        data,
        epochs=epochs,
        batch=batch,
        learning_rate=3e-3,
        seed=seeds.derive(here.seed, "pooled"),
        augmentation=here.params.profiles[here.dataset].augmentation,
        one_cycle=True,
    )
    return state_of(model)


def tuned(
    here: World, initial: State, records: Images, recipe: str, pool: Pool, seed: int
) -> Personal:
    """Makes a client's own model of the one that it is handed.

    Args:
        here: the clients.
        initial: the weights handed out.
        records: the client's labelled records.
        recipe: `prior` trains nothing, `plain` trains on the records alone, `replay` on both.
        pool: all released images.
        seed: of the batches.
    """
    model = with_state(here.build(), initial)
    prior = replay.log_prior(records.labels, here.params.profiles[here.dataset].classes)
    if recipe == "prior":
        return balanced(model, prior)
    if recipe == "replay":
        settings = here.params.fine_tune.replay
        replay.fit(model, records, pool, prior=prior, settings=settings, seed=seed)
        return balanced(model, prior)
    steps, rate = (100, 3e-3) if len(records) <= 250 else (3000, 1e-3)
    plain = Replay.model_validate(
        {"schedules": [{"from_labels": 0, "steps": steps, "learning_rate": rate, "cosine": True}]}
    )
    flat = np.zeros_like(prior)
    replay.fit(model, records, None, prior=flat, settings=plain, seed=seed)
    return prior_off(model, prior)


def scored(here: World, personal: Personal, client: str) -> dict[str, float]:
    """Returns the accuracy on the client's own test part, and on the global test set, both read-outs."""
    own = here.shards[client].test
    return {
        "own": float(np.mean(personal.predict(own) == own.labels)),
        "global": accuracy(personal, here.everyone, elsewhere=True),
        "global_at_home": accuracy(personal, here.everyone),
    }


def accuracy(personal: Personal, data: Images, *, elsewhere: bool = False) -> float:
    """Returns the share of images that are classified rightly."""
    return float(np.mean(personal.predict(data, elsewhere=elsewhere) == data.labels))


def wanted(
    dataset: str, seed: int, starts: list[str], recipes: list[str], labels: list[str]
) -> list[dict]:
    """Returns the keys of all cells of one draw.

    Args:
        dataset: its name.
        seed: of the draw.
        starts: the models that clients are handed.
        recipes: what clients do with them.
        labels: numbers of labels of newcomers, and `all` for federated clients.
    """
    keys = []
    for start in starts:
        for recipe in ("plain",) if start == "random" else recipes:
            for count in labels:
                for client in FEDERATED if count == ALL else NEWCOMERS:
                    key = {"dataset": dataset, "seed": seed, "start": start, "recipe": recipe}
                    keys.append({**key, "labels": count, "client": client})
    return keys


def measured(here: World, keys: list[dict]) -> Iterator[dict]:
    """Yields the cell of each key. The model of a start is trained once."""
    pool = here.pool
    models = {}
    for key in tqdm(keys, desc=f"{here.dataset}, seed {here.seed}", disable=None):
        start = key["start"]
        if start not in models:
            began = cpu_seconds()
            models[start] = (start_of(here, start), cpu_seconds() - began)
        initial, start_seconds = models[start]
        records = labelled(here, key["client"], key["labels"])
        began = cpu_seconds()
        personal = tuned(here, initial, records, key["recipe"], pool, here.seed)
        seconds = cpu_seconds() - began
        yield {
            **key,
            **scored(here, personal, key["client"]),
            "records": len(records),
            "start_cpu_seconds": start_seconds,
            "cpu_seconds": seconds,
        }


def labelled(here: World, client: str, count: str) -> Images:
    """Returns the records that a client has labels of. Fewer labels are among more."""
    records = here.shards[client].train
    if count == ALL:
        return records
    rng = np.random.default_rng(seeds.derive(here.seed, "labelled", client))
    return records[rng.permutation(len(records))[: int(count)]]


def summary(cells: list[dict]) -> list[dict]:
    """Returns the table: means over clients and seeds, and paired differences to training alone.

    `local` is the start `random` with the recipe `plain`. On the global test set its prior is off.
    """
    alone = {_who(cell): cell for cell in cells if cell["start"] == "random"}
    rows = []
    for name in dict.fromkeys(_what(cell) for cell in cells):
        group = [cell for cell in cells if _what(cell) == name and _who(cell) in alone]
        if not group:
            continue
        own = [cell["own"] - alone[_who(cell)]["own"] for cell in group]
        everywhere = [cell["global"] - alone[_who(cell)]["global"] for cell in group]
        rows.append(
            {
                **dict(zip(COLUMNS, name)),
                "own": _mean(cell["own"] for cell in group),
                "global": _mean(cell["global"] for cell in group),
                "seeds": len({cell["seed"] for cell in group}),
                "cells": len(group),
                "own_less_local": _mean(own),
                "worst_own_less_local": min(own),
                "global_less_local_prior_off": _mean(everywhere),
                "worst_global_less_local_prior_off": min(everywhere),
            }
        )
    return rows


COLUMNS = ("dataset", "labels", "start", "recipe")


def _what(cell: dict) -> tuple:
    return tuple(cell[column] for column in COLUMNS)


def _who(cell: dict) -> tuple:
    return tuple(cell[column] for column in ("dataset", "seed", "client", "labels"))


def _mean(values) -> float:
    return float(np.mean(list(values)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, default=Path("../shared/datasets"))
    parser.add_argument("--datasets", nargs="+", default=["digits", "mnist", "fashion_mnist"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--starts", nargs="+", default=list(STARTS), choices=STARTS)
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), choices=RECIPES)
    parser.add_argument("--labels", nargs="+", default=["8", "16", "32", "64", "250", ALL])
    parser.add_argument("--development", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    params = config.load()
    name = f"{NAME}_development" if arguments.development else NAME
    chosen = [DEVELOPMENT_SEED] if arguments.development else arguments.seeds
    done = kept_cells(name)
    for seed, dataset, train, test in cells(params, arguments.datasets, chosen, arguments.images):
        keys = wanted(dataset, seed, arguments.starts, arguments.recipes, arguments.labels)
        missing = [key for key in keys if not any(has(cell, key) for cell in done)]
        if not missing:
            continue
        here = world(params, dataset, seed, train, None if arguments.development else test)
        for cell in measured(here, missing):
            done.append(cell)
            keep(name, summary(done), cells=done)
    show(summary(done))


def kept_cells(name: str) -> list[dict]:
    """Returns the cells of earlier calls."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text())["cells"] if path.exists() else []


if __name__ == "__main__":
    main()
