"""Clients that took no part in the shared training: what its model is worth to them when they have few labels.

Each held-out client in turn: every algorithm trains on the sets of the others alone. The newcomer labels a few records
of its train part, takes a fixed number of full-batch Adam steps from the model it is handed, and is tested. Nothing is
selected, for a validation part would be more labels. `random_init` hands out an untrained model, so it is those few
labels and nothing else: the bar. All of it is private: it is computed from the newcomer's own records.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from torch import nn
from tqdm import tqdm

from pipelines import seeds
from pipelines.config.training import NewClients
from pipelines.config.values import Block
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard
from pipelines.evaluation.scoring import scores
from pipelines.federation import baselines
from pipelines.federation.core.task import Task
from pipelines.training import classifier
from pipelines.training.tensors import State, with_state


class Study(NamedTuple):
    """cells: one per algorithm, client, number of labels and draw: {"algorithm", "client", "labels", "draw",
    "accuracy", "macro_f1" on the client's own test part, "global_accuracy", "global_macro_f1"}; without labels, `draw`
    is 0. skipped: {"client", "labels", "records"}, where the train part has fewer records than `labels`. costs: one per
    algorithm and client: that of the shared training, and "seconds_at_home" of all adaptations and their tests."""

    cells: list[dict]
    skipped: list[dict]
    costs: list[dict]


def study(
    task: Task,
    newcomers: dict[str, Shard],
    everyone: Images,
    *,
    settings: NewClients,
    training: dict[str, Block],
    seed: int,
    unfinished: Path | None = None,
) -> Study:
    """Every newcomer with every algorithm.

    Args:
        task: of all clients; each newcomer is left out of it in its turn.
        newcomers: the private records of the clients to hold out.
        everyone: the global test set.
        training: {algorithm: its settings}.
        seed: of the draws, which are the same for every algorithm and generator.
        unfinished: where shared training goes on from, if it was killed.
    """
    cells, costs = [], []
    for client in sorted(newcomers):
        own = seeds.derive(seed, client)
        for algorithm, training_settings in training.items():
            model, cost = shared_model(
                algorithm, without(task, client), training_settings, unfinished
            )
            started = time.perf_counter()
            rows = few_labels(
                model, newcomers[client], everyone, build=task.build, settings=settings, seed=own
            )
            watched = tqdm(rows, desc=f"{client} from {algorithm}", disable=None, mininterval=1)
            cells += [{"algorithm": algorithm, "client": client, **row} for row in watched]
            at_home = {"seconds_at_home": time.perf_counter() - started}
            costs.append({"algorithm": algorithm, "client": client, **cost, **at_home})
    return Study(cells, _skipped(newcomers, settings.labels), costs)


def without(task: Task, client: str) -> Task:
    """The task as if `client` were none of the federation: neither its set nor its epsilon is there."""
    data, epsilons = (
        {name: own[name] for name in own if name != client} for own in (task.data, task.epsilons)
    )
    return replace(task, data=data, epsilons=epsilons)


def shared_model(
    algorithm: str, task: Task, settings: Block, unfinished: Path | None = None
) -> tuple[State, dict]:
    """(the last round's model, cost); one model for all clients, and for who joins later."""
    (trained,) = baselines.trained(algorithm, task, settings, unfinished=unfinished).values()
    return next(iter(trained.models[-1].values())), trained.cost


def few_labels(
    initial: State,
    shard: Shard,
    everyone: Images,
    *,
    build: Callable[[], nn.Module],
    settings: NewClients,
    seed: int,
) -> Iterator[dict]:
    """One newcomer from one model: a row without labels, then one per number of labels and draw."""
    yield {"labels": 0, "draw": 0, **_tested(with_state(build(), initial), shard, everyone)}
    for count in settings.labels:
        for draw in range(1, settings.draws + 1) if count <= len(shard.train) else ():
            model = with_state(build(), initial)
            adapt(model, labelled(shard.train, count, seeds.derive(seed, draw)), settings)
            yield {"labels": count, "draw": draw, **_tested(model, shard, everyone)}


def labelled(records: Images, count: int, seed: int) -> Images:
    """`count` of the records, uniformly without replacement; with the same seed, fewer are among more."""
    return records[np.random.default_rng(seed).permutation(len(records))[:count]]


def adapt(model: nn.Module, records: Images, settings: NewClients) -> None:
    """`steps` steps of Adam in place, each on all records: the seed shuffles nothing that matters."""
    classifier.fit(
        model,
        records,
        epochs=settings.steps,
        batch=len(records),
        learning_rate=settings.learning_rate,
        seed=0,
    )


def _tested(model: nn.Module, shard: Shard, everyone: Images) -> dict[str, float]:
    return {
        **scores(model, shard.test),
        **{f"global_{name}": value for name, value in scores(model, everyone).items()},
    }


def _skipped(newcomers: dict[str, Shard], labels: list[int]) -> list[dict]:
    return [
        {"client": client, "labels": count, "records": len(shard.train)}
        for client, shard in sorted(newcomers.items())
        for count in labels
        if count > len(shard.train)
    ]
