"""Every method beside PPPFL as one thing: the initial models it leaves to each client, round by round, and its cost."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines import methods, seeds
from pipelines.config.training import Pooled
from pipelines.config.values import Block
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.evaluation.scoring import scores
from pipelines.federation.core.rounds import History
from pipelines.federation.core.task import Task
from pipelines.federation.inprocess import federate
from pipelines.training import classifier
from pipelines.training.tensors import State, state_of, with_state

NO_COST = {"rounds": 0, "bytes_down": 0, "bytes_up": 0, "seconds": 0.0}


@dataclass(frozen=True)
class Trained:
    """models: per round, {client: the weights it starts from at home}; before the first round and after each."""

    models: list[dict[str, State]]
    cost: dict


def trained(
    algorithm: str,
    task: Task,
    settings: Block,
    carried: Callable[[], History] | None = None,
    unfinished: Path | None = None,
) -> dict[str, Trained]:
    """{method: what it left}.

    Args:
        carried: runs the rounds of an algorithm that has some, where not in this process.
        unfinished: where rounds in this process go on from, if they were killed.
    """
    if algorithm in methods.AT_HOME:
        return {algorithm: Trained([dict.fromkeys(task.data, task.start())], NO_COST)}
    if algorithm == "single":
        return _single(task, settings)
    if algorithm == "pooled":
        return {algorithm: _pooled(task, settings)}
    history = carried() if carried else federate(algorithm, task, settings, unfinished)
    return {
        algorithm: Trained(
            [dict.fromkeys(task.data, model) for model in history.models], history.cost
        )
    }


def _pooled(task: Task, settings: Pooled) -> Trained:
    """One model on all sets, which someone must hold: each is sent once, and the model sent back."""
    start = time.perf_counter()
    everything = concatenate([task.data[client] for client in sorted(task.data)])
    model = _fitted(task, everything, settings, "pooled")
    down = len(task.data) * _bytes(model)
    cost = {"rounds": 1, "bytes_down": down, "bytes_up": everything.images.nbytes}
    return Trained(
        [dict.fromkeys(task.data, model)], {**cost, "seconds": time.perf_counter() - start}
    )


def _single(task: Task, settings: Pooled) -> dict[str, Trained]:
    """A model per client on its own set. `best_single` is the one that does best on the other clients' synthetic sets,
    so no private record chooses; it goes to all."""
    start = time.perf_counter()
    models = {
        client: _fitted(task, data, settings, client) for client, data in sorted(task.data.items())
    }
    own = {**NO_COST, "seconds": time.perf_counter() - start}
    best = max(models, key=lambda client: _elsewhere(task, client, models[client]))
    size, others = _bytes(models[best]), len(models) - 1
    sets = sum(data.images.nbytes for data in task.data.values())
    compared = {
        "rounds": 1,
        "bytes_up": size * (others + 1) + sets,
        "bytes_down": size * len(models),
    }
    return {
        "own_synthetic": Trained([models], own),
        "best_single": Trained([dict.fromkeys(models, models[best])], {**own, **compared}),
    }


def _elsewhere(task: Task, client: str, model: State) -> float:
    """Mean accuracy on the other clients' synthetic sets."""
    network = with_state(task.build(), model)
    others = [data for name, data in sorted(task.data.items()) if name != client]
    return float(np.mean([scores(network, data)["accuracy"] for data in others])) if others else 0.0


def _fitted(task: Task, data: Images, settings: Pooled, name: str) -> State:
    model, seed = task.build(), seeds.derive(task.seed, name)
    classifier.fit(model, data, seed=seed, augmentation=task.augmentation, **settings.model_dump())
    return state_of(model)


def _bytes(model: State) -> int:
    return sum(array.nbytes for array in model.values())
