"""Clients that took no part in the shared training: what its model is worth to them with few labels.

Each held-out client in turn: every algorithm trains on the sets of the others alone. The new client
labels a few records of its train part, trains the model that it is handed by its recipe (`replay`,
or `plain`: a fixed number of full-batch Adam steps), and is tested. Nothing is selected, for a
validation part would be more labels. `random_init` hands out an untrained model and no images, so
it is plain steps on those few labels and nothing else: the bar. All of it is private: it is
computed from the new client's own records.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from torch import nn
from tqdm import tqdm

from pipelines import methods, seeds
from pipelines.config.training import NewClients, Replay
from pipelines.config.values import Block
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard
from pipelines.evaluation.metrics import scores_of
from pipelines.evaluation.scoring import scores
from pipelines.federation import baselines
from pipelines.federation.core.task import Task
from pipelines.federation.home.personal import Personal
from pipelines.federation.home.recipes import replayed
from pipelines.training import classifier
from pipelines.training.pool import Pool, released_pool
from pipelines.training.tensors import State, with_state


class Study(NamedTuple):
    """Holds what every new client came to with every algorithm.

    Attributes:
        cells: one per algorithm, client, number of labels and draw: {"algorithm", "client", "labels",
            "draw", "accuracy", "macro_f1" on the client's own test part, "global_accuracy",
            "global_macro_f1"}. Without labels, `draw` is 0.
        skipped: {"client", "labels", "records"}, where the train part has fewer records than `labels`.
        costs: one per algorithm and client: that of the shared training, and "seconds_at_home" of all
            adaptations and their tests.
    """

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
    replay: Replay | None = None,
    per_class: int | None = None,
    unfinished: Path | None = None,
) -> Study:
    """Tests every new client with every algorithm.

    Args:
        task: of all clients; each new client is left out of it in its turn.
        newcomers: the private records of the clients to hold out.
        everyone: the global test set.
        settings: numbers of labels, draws and steps.
        training: {algorithm: its settings}.
        seed: of the draws, which are the same for every algorithm and generator.
        replay: the recipe of `settings.recipe` replay; it draws from the others' sets.
        per_class: how many released images of a class go out with a model; None: all.
        unfinished: where shared training goes on from, if it was killed.
    """
    cells = []
    costs = []
    for client in sorted(newcomers):
        client_seed = seeds.derive(seed, client)
        for algorithm, training_settings in training.items():
            names = {"algorithm": algorithm, "client": client}
            rest = without(task, client)
            model, cost = shared_model(algorithm, rest, training_settings, unfinished)
            started = time.perf_counter()
            rows = few_labels(
                model,
                newcomers[client],
                everyone,
                build=task.build,
                settings=settings,
                seed=client_seed,
                recipe=_recipe(rest, algorithm, settings, replay, per_class),
            )
            bar = tqdm(rows, desc=f"{client} from {algorithm}", disable=None, mininterval=1)
            cells += [{**names, **row} for row in bar]
            seconds = time.perf_counter() - started
            costs.append({**names, **cost, "seconds_at_home": seconds})
    return Study(cells, _skipped(newcomers, settings.labels), costs)


def without(task: Task, client: str) -> Task:
    """Returns the task without one client: neither its set nor its epsilon is there."""
    others = [name for name in task.data if name != client]
    return replace(
        task,
        data={name: task.data[name] for name in others},
        epsilons={name: task.epsilons[name] for name in others},
    )


def shared_model(
    algorithm: str, task: Task, settings: Block, unfinished: Path | None = None
) -> tuple[State, dict]:
    """Trains the one model of all clients, and of those who join later.

    Args:
        algorithm: the method's name.
        task: of the clients that take part.
        settings: the method's.
        unfinished: where a killed run left what it had.

    Returns:
        The last round's model, and the cost.
    """
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
    recipe: tuple[Replay, Pool] | None = None,
) -> Iterator[dict]:
    """Tests one new client from one model.

    Args:
        initial: the weights that it is handed.
        shard: its private records.
        everyone: the global test set.
        build: makes a network of the right shape.
        settings: numbers of labels, draws and steps.
        seed: of the draws.
        recipe: the settings of replay and the released images, or None for plain steps.

    Yields:
        A row without labels, then one per number of labels and draw.
    """
    yield {"labels": 0, "draw": 0, **_tested(with_state(build(), initial), shard, everyone)}
    for count in settings.labels:
        if count > len(shard.train):
            continue
        for draw in range(1, settings.draws + 1):
            model = with_state(build(), initial)
            draw_seed = seeds.derive(seed, draw)
            records = labelled(shard.train, count, draw_seed)
            names = {"labels": count, "draw": draw}
            if recipe:
                replay, pool = recipe
                tuned, _ = replayed(model, records, replay, seed=draw_seed, build=build, pool=pool)
                yield {**names, **_read_out(tuned, shard, everyone)}
            else:
                adapt(model, records, settings)
                yield {**names, **_tested(model, shard, everyone)}


def labelled(records: Images, count: int, seed: int) -> Images:
    """Draws `count` of the records without replacement; with the same seed, fewer are among more.

    Args:
        records: the client's train part.
        count: how many get a label.
        seed: of the draw.
    """
    return records[np.random.default_rng(seed).permutation(len(records))[:count]]


def adapt(model: nn.Module, records: Images, settings: NewClients) -> None:
    """Takes `steps` steps of Adam in place, each on all records: the seed shuffles nothing that matters.

    Args:
        model: the network, whose weights change.
        records: the labelled records.
        settings: the number of steps and the learning rate.
    """
    classifier.fit(
        model,
        records,
        epochs=settings.steps,
        batch=len(records),
        learning_rate=settings.learning_rate,
        seed=0,
    )


def _recipe(
    task: Task,
    algorithm: str,
    settings: NewClients,
    replay: Replay | None,
    per_class: int | None,
) -> tuple[Replay, Pool] | None:
    """Returns the recipe of the settings. A client with an untrained model has no released images."""
    if settings.recipe == "plain" or algorithm in methods.AT_HOME:
        return None
    device = next(task.build().parameters()).device
    return replay, released_pool(task.data, task.augmentation, device, per_class)


def _read_out(tuned: Personal, shard: Shard, everyone: Images) -> dict[str, float]:
    """Returns the scores of a personal model: each test by its own read-out."""
    own = scores_of(tuned.predict(shard.test), shard.test.labels)
    globally = scores_of(tuned.predict(everyone, elsewhere=True), everyone.labels)
    return {**own, **{f"global_{name}": value for name, value in globally.items()}}


def _tested(model: nn.Module, shard: Shard, everyone: Images) -> dict[str, float]:
    globally = scores(model, everyone)
    return {
        **scores(model, shard.test),
        **{f"global_{name}": value for name, value in globally.items()},
    }


def _skipped(newcomers: dict[str, Shard], labels: list[int]) -> list[dict]:
    skipped = []
    for client, shard in sorted(newcomers.items()):
        records = len(shard.train)
        for count in labels:
            if count > records:
                skipped.append({"client": client, "labels": count, "records": records})
    return skipped
