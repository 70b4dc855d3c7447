"""Every method beside PPPFL: the initial models that it leaves to each client, and its cost."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines import methods
from pipelines.config.training import Pooled
from pipelines.config.values import Block
from pipelines.evaluation.scoring import scores
from pipelines.federation.core.gathered import trained_on
from pipelines.federation.core.rounds import History
from pipelines.federation.core.task import Task
from pipelines.federation.inprocess import federate
from pipelines.training.tensors import State, with_state

NO_COST = {"rounds": 0, "bytes_down": 0, "bytes_up": 0, "seconds": 0.0}


@dataclass(frozen=True)
class Trained:
    """Holds what a method left.

    Attributes:
        models: per round, {client: the weights that it starts from}; before the first round and after
            each.
        cost: {"rounds", "bytes_down", "bytes_up", "seconds"}.
    """

    models: list[dict[str, State]]
    cost: dict


def trained(
    algorithm: str,
    task: Task,
    settings: Block,
    network: Callable[[], History] | None = None,
    unfinished: Path | None = None,
) -> dict[str, Trained]:
    """Trains a method.

    Args:
        algorithm: its name.
        task: what it trains on.
        settings: the method's.
        network: runs the rounds of an algorithm that has some, where not in this process.
        unfinished: where rounds in this process go on from, if they were killed.

    Returns:
        {method: what it left}. `single` reports two methods.
    """
    if algorithm in methods.AT_HOME:
        return {algorithm: Trained([dict.fromkeys(task.data, task.start())], NO_COST)}
    if algorithm == "single":
        return _single(task, settings)
    history = network() if network else federate(algorithm, task, settings, unfinished)
    models = [dict.fromkeys(task.data, model) for model in history.models]
    return {algorithm: Trained(models, history.cost)}


def _single(task: Task, settings: Pooled) -> dict[str, Trained]:
    """Trains a model per client on its own set.

    `best_single` is the one that does best on the other clients' synthetic sets, so no private record
    chooses; it goes to all.
    """
    start = time.perf_counter()
    models = {}
    for client, data in sorted(task.data.items()):
        models[client] = trained_on(task, data, settings, client)
    apart = {**NO_COST, "seconds": time.perf_counter() - start}
    best = max(models, key=lambda client: _elsewhere(task, client, models[client]))
    size = _bytes(models[best])
    sets = sum(data.images.nbytes for data in task.data.values())
    compared = {
        "rounds": 1,
        "bytes_up": size * len(models) + sets,
        "bytes_down": size * len(models),
    }
    shared = dict.fromkeys(models, models[best])
    return {
        "own_synthetic": Trained([models], apart),
        "best_single": Trained([shared], {**apart, **compared}),
    }


def _elsewhere(task: Task, client: str, model: State) -> float:
    """Returns the mean accuracy on the other clients' synthetic sets."""
    network = with_state(task.build(), model)
    accuracies = []
    for name, data in sorted(task.data.items()):
        if name != client:
            accuracies.append(scores(network, data)["accuracy"])
    return float(np.mean(accuracies)) if accuracies else 0.0


def _bytes(model: State) -> int:
    return sum(array.nbytes for array in model.values())
