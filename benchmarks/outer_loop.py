"""Searches for the outer loop of PPPFL on synthetic images alone; `meta` in params.yaml is its result.

    python -m benchmarks.outer_loop --datasets digits
    python -m benchmarks.outer_loop --datasets mnist fashion_mnist --images ../shared/datasets

The second command takes half an hour for each data set. Every client of the partition releases a
`dp_moments` set within its own budget. A fifth of each set is held back from meta-training.

A model is scored on that fifth, one client at a time. STEPS steps of Adam adapt it to LABELS of the
images, and it is tested on the rest. The score is the mean over clients. Records are read only to
make the releases, so anyone who has the sets may choose by these scores. Rows that are stored under
the same settings are not measured again.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from torch import nn

from benchmarks import common
from benchmarks.common import keep, kept, show
from pipelines import config, seeds
from pipelines.config.training import Meta
from pipelines.datasets import partitions
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.federation.core.task import Task
from pipelines.federation.inprocess import federate
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import base, release
from pipelines.training import classifier
from pipelines.training.tensors import State, with_state

NAME = "outer_loop"
GENERATOR = "dp_moments"
# Share of each set that meta-training does not see.
HELD_OUT = 0.2
LABELS = 8
STEPS = 30
# Number of draws of labelled images of each client.
DRAWS = 5
PAPER = {"inner_learning_rate": 1e-4, "inner_steps": 1, "outer_learning_rate": 3e-4, "batch": 64}
BOTH = {"ema": True, "cosine": True}
NEITHER = {"ema": False, "cosine": False}
# Changes to the settings of `meta`. A candidate without an outer rate has the profile's.
CANDIDATES = {
    "paper": {**PAPER, **BOTH},
    "EMA and cosine, outer 0.001": {**BOTH, "outer_learning_rate": 1e-3},
    "EMA and cosine, outer 0.003": {**BOTH, "outer_learning_rate": 3e-3},
    "EMA and cosine, outer 0.01": {**BOTH, "outer_learning_rate": 1e-2},
    "EMA and cosine, outer 0.03": {**BOTH, "outer_learning_rate": 3e-2},
    "neither, outer 0.001": {**NEITHER, "outer_learning_rate": 1e-3},
    "neither, outer 0.003": {**NEITHER, "outer_learning_rate": 3e-3},
    "neither, outer 0.01": {**NEITHER, "outer_learning_rate": 1e-2},
    "neither, outer 0.03": {**NEITHER, "outer_learning_rate": 3e-2},
    "EMA": {**NEITHER, "ema": True},
    "cosine": {**NEITHER, "cosine": True},
    "neither, inner 0.01": {**NEITHER, "inner_learning_rate": 0.01},
    "neither, inner 0.03": {**NEITHER, "inner_learning_rate": 0.03},
    "neither, inner 0.3": {**NEITHER, "inner_learning_rate": 0.3},
    "neither, inner steps 1": {**NEITHER, "inner_steps": 1},
    "neither, inner steps 5": {**NEITHER, "inner_steps": 5},
    "neither, first order": {**NEITHER, "order": "first"},
    "neither, 300 rounds": {**NEITHER, "rounds": 300},
    "neither, 300 rounds, first order": {**NEITHER, "rounds": 300, "order": "first"},
}
# {column: share of the rounds}
READ = {
    "fresh": 0,
    "a third": 1 / 3,
    "two thirds": 2 / 3,
    "all rounds": 1,
}


def synthetic_sets(params: config.Params, dataset: str, root: Path) -> dict[str, Images]:
    """Makes a release of every client and returns {client: its synthetic set}.

    Args:
        params: The parameters of params.yaml.
        dataset: Name of the data set.
        root: Folder of the raw files.
    """
    profile = params.profiles[dataset]
    pool, test = common.read(params, dataset, root)
    rng = np.random.default_rng(seeds.derive(params.seed, NAME))
    if test is None:
        _, pool = common.split(pool, params.prepare.test_fraction, rng)
    module = base.load(GENERATOR)
    settings = params.generator(dataset, GENERATOR)
    sets = {}
    for client, shard in partitions.cut(pool, params.partition, rng).items():
        budget = Budget(*params.budget(client))
        plan = module.plan(settings, budget, release.public_space(profile))
        fit_seed = seeds.derive(params.seed, GENERATOR, client)
        state = module.fit(shard.train, plan, OsEntropy(), fit_seed)
        sample_seed = seeds.derive(params.seed, "sample", client)
        sets[client] = module.sample(state, profile.images, sample_seed)
    return sets


def adapted(model: State, sets: dict[str, Images], build: Callable[[], nn.Module]) -> float:
    """Returns a model's accuracy after it is adapted to few images, mean over clients and draws.

    Args:
        model: Weights of the model.
        sets: {client: images}. LABELS of them are trained on, and the rest is tested.
        build: Makes a network for the weights.
    """
    accuracies = []
    for client, data in sorted(sets.items()):
        for draw in range(DRAWS):
            rows = np.random.default_rng(seeds.derive(draw, client)).permutation(len(data))
            network = with_state(build(), model)
            few = data[rows[:LABELS]]
            rest = data[rows[LABELS:]]
            classifier.fit(network, few, epochs=STEPS, batch=LABELS, learning_rate=1e-3, seed=draw)
            accuracies.append(scores(network, rest)["accuracy"])
    return float(np.mean(accuracies))


def measure(params: config.Params, dataset: str, sets: dict[str, Images], settings: Meta) -> dict:
    """Meta-trains on synthetic sets and scores the shared model of some rounds.

    Args:
        params: The parameters of params.yaml.
        dataset: Name of the data set.
        sets: {client: its synthetic set}.
        settings: Settings of the candidate.

    Returns:
        "rounds", and the score for each column of READ.
    """
    profile = params.profiles[dataset]
    build = partial(classifier.new, profile, seeds.derive(params.seed, "init", dataset))
    held_out = {}
    trained = {}
    epsilons = {}
    for client, data in sets.items():
        count = round(len(data) * HELD_OUT)
        held_out[client] = data[:count]
        trained[client] = data[count:]
        epsilons[client] = params.clients[client].epsilon
    seed = seeds.derive(params.seed, NAME, dataset)
    task = Task(trained, build, profile.augmentation, epsilons, seed)
    models = federate("pppfl", task, settings).models
    row = {"rounds": settings.rounds}
    for column, share in READ.items():
        row[column] = adapted(models[round(settings.rounds * share)], held_out, build)
    return row


def main() -> None:
    """Measures the candidates that are not stored yet, and prints all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, help="where the raw files lie; else `prepare.root`")
    parser.add_argument("--datasets", nargs="+", default=["digits"])
    parser.add_argument("--candidates", nargs="+", choices=CANDIDATES, default=list(CANDIDATES))
    arguments = parser.parse_args()
    params = config.load()
    for dataset in arguments.datasets:
        sets = synthetic_sets(params, dataset, arguments.images or Path(params.prepare.root))
        for candidate in arguments.candidates:
            settings = params.training(dataset, "meta").model_copy(update=CANDIDATES[candidate])
            _add({"dataset": dataset, "candidate": candidate}, params, sets, settings)
    show(kept(NAME), hidden=("settings",))


def _add(key: dict, params: config.Params, sets: dict[str, Images], settings: Meta) -> None:
    """Measures a candidate and stores it, unless it is stored under the same settings."""
    used = {
        **settings.model_dump(),
        "images": len(next(iter(sets.values()))),
        "labels": LABELS,
        "steps": STEPS,
    }
    if any(common.has(row, {**key, "settings": used}) for row in kept(NAME)):
        return
    row = {**key, **measure(params, key["dataset"], sets, settings), "settings": used}
    print(*(value for name, value in row.items() if name != "settings"), flush=True)
    rows = sorted([*common.without(kept(NAME), key), row], key=_place)
    keep(NAME, rows, judged_on="synthetic images alone")


def _place(row: dict) -> tuple[str, int]:
    """Returns the place of a row in the table."""
    return row["dataset"], list(CANDIDATES).index(row["candidate"])


if __name__ == "__main__":
    main()
