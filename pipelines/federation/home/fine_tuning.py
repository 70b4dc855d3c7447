"""Fine-tuning at home and its scores: every method alike, from any initial model. All of it is private."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from torch import nn

from pipelines import seeds
from pipelines.config.training import FineTune
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard
from pipelines.evaluation.metrics import scores_of
from pipelines.evaluation.scoring import predictions, scores
from pipelines.federation import selection
from pipelines.training import classifier
from pipelines.training.tensors import State, state_of, with_state

Build = Callable[[], nn.Module]


class Homes(NamedTuple):
    """What one initial model per client became.

    results: {client: {"before", "after": {metric: value} on its own test part, "validation": accuracy on its
    validation part afterwards, "global_before", "global_after": accuracy on the global test set, "epochs"}}.
    """

    results: dict[str, dict]
    personal: dict[str, State]
    correct: dict[
        str, np.ndarray
    ]  # per client bool [n]: is each image of its test part classified rightly afterwards
    seconds: float  # of the fine-tuning alone, all clients one after the other


class Outcome(NamedTuple):
    """What a method became: the last round's model fine-tuned, and a curve over rounds. summary: `from_each_own`."""

    summary: dict
    curve: list[dict]
    personal: dict[str, State]
    correct: dict[str, np.ndarray]
    seconds: float


def at_home(
    initial: dict[str, State],
    shards: dict[str, Shard],
    everyone: Images,
    *,
    build: Build,
    settings: FineTune,
    seed: int,
) -> Homes:
    """Fine-tunes each client's initial model on its private records, stopping early on its private validation part."""
    results, personal, correct, seconds = {}, {}, {}, 0.0
    globally = on_everyone(initial, everyone, build=build)
    for client in sorted(shards):
        shard, model = shards[client], with_state(build(), initial[client])
        before = scores(model, shard.test)
        started = time.perf_counter()
        epochs = classifier.fit(
            model,
            shard.train,
            epochs=settings.epochs,
            batch=settings.batch,
            learning_rate=settings.learning_rate,
            seed=seeds.derive(seed, client),
            validation=shard.validation,
            patience=settings.patience,
        )
        seconds += time.perf_counter() - started
        predicted = predictions(model, shard.test)
        results[client] = {
            "before": before,
            "after": scores_of(predicted, shard.test.labels),
            "validation": scores(model, shard.validation)["accuracy"],
            "global_before": globally[client],
            "global_after": scores(model, everyone)["accuracy"],
            "epochs": epochs,
        }
        correct[client] = predicted == shard.test.labels
        personal[client] = state_of(model)
    return Homes(results, personal, correct, seconds)


def on_everyone(initial: dict[str, State], everyone: Images, *, build: Build) -> dict[str, float]:
    """Accuracy of each client's initial model on the global test set; one that several start from is scored once."""
    models = {id(state): state for state in initial.values()}
    found = {
        key: scores(with_state(build(), state), everyone)["accuracy"]
        for key, state in models.items()
    }
    return {client: found[id(state)] for client, state in initial.items()}


def through_rounds(
    models: list[State], shards: dict[str, Shard], everyone: Images, **asked
) -> Outcome:
    """`from_each_own` where all clients share one model per round. asked: as there."""
    return from_each_own(
        [dict.fromkeys(shards, model) for model in models], shards, everyone, **asked
    )


def from_each_own(
    models: list[dict[str, State]],
    shards: dict[str, Shard],
    everyone: Images,
    *,
    build: Build,
    settings: FineTune,
    seed: int,
    first: int = 0,
) -> Outcome:
    """The last round's models fine-tuned (the result), and a curve over rounds: every `every`-th and the last are
    fine-tuned, or with `every` None the last alone; every `shared_every`-th is scored as it is, on the global test set.

    The summary holds "clients", Homes.results of the last round, and what `selection.figures` finds on the curve.

    Args:
        models: per round, from round `first`, each client's initial model. Noisy training hands its last one alone.
    """
    last = first + len(models) - 1
    tuned = {*_each(settings.every, first, last), last}
    curve = []
    for number in sorted(tuned.union(_each(settings.shared_every, first, last))):
        model = models[number - first]
        if number in tuned:
            homes = at_home(model, shards, everyone, build=build, settings=settings, seed=seed)
            curve.append(selection.row(number, homes.results))
        else:
            curve.append(selection.untuned(number, on_everyone(model, everyone, build=build)))
    return Outcome({"clients": homes.results, **selection.figures(curve)}, curve, *homes[1:])


def _each(so_many: int | None, first: int, last: int) -> range:
    """From the first round, without the last; None: no round."""
    return range(first, last, so_many) if so_many else range(0)
