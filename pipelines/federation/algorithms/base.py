"""The contract of a federated algorithm, as a type, and how an algorithm is found by name.

A module of `algorithms/` is one algorithm. Plain and noisy algorithms obey the same contract. This
is the smallest one, and a run of it with two clients:

>>> from types import SimpleNamespace
>>> import numpy as np
>>> from pipelines.federation.core import rounds
>>> from pipelines.federation.core.messages import COUNT, weighted_mean
>>> from pipelines.federation.inprocess import in_process
>>> class Mean:
...     TELLS = {"images": COUNT}
...     def server(task, settings):
...         return ServerState({"w": np.zeros(1)})
...     def client(task, name, settings):
...         state = ClientState()
...         state.value = task.data[name]
...         return state
...     def client_update(payload, client, settings):
...         return Payload({"w": payload.arrays["w"] + client.value}, {"images": 1})
...     def server_step(state, replies):
...         return ServerState(weighted_mean(replies, [1.0] * len(replies)))
>>> task = SimpleNamespace(data={"a": 1.0, "b": 3.0})
>>> history = rounds.run(
...     Mean.server(task, None), Mean.server_step, in_process(Mean, task, None), rounds=2, name="mean"
... )
>>> [float(model["w"][0]) for model in history.models]
[0.0, 2.0, 4.0]
"""

import importlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from pipelines import methods
from pipelines.config.values import Block
from pipelines.federation.core.messages import (
    ClientState,
    Payload,
    Reply,
    ScalarRange,
    ServerState,
)
from pipelines.federation.core.task import Task


class Algorithm(Protocol):
    """A federated algorithm: four functions, and the scalars that its clients may send.

    Five more members are optional. `update_all(payload, clients, settings)` does a round of all
    clients of one process at once, {name: state} to {name: answer}, where they can share work.
    `SHARES_SETS = True` says that every client holds all clients' synthetic sets (`Task.pool`).
    The other three are for a server that holds them. `gathers_sets(settings)` says whether it does
    before the first round. `at_server(settings)` says whether it then runs all rounds alone.
    `warm_start(task, settings)` returns the weights to begin from, or None.

    A noisy algorithm (`noisy_run.NoisyAlgorithm`) is given a `dp.noisy_task.NoisyTask` for `task`.

    Attributes:
        TELLS: the scalars that `client_update` may send. The client's gate lets no other pass, and
            the server demands each of them, within its range.
    """

    TELLS: Mapping[str, ScalarRange]

    def server(self, task: Task, settings: Block) -> ServerState:
        """Returns the server's state before the first round."""

    def client(self, task: Task, name: str, settings: Block) -> ClientState:
        """Returns a client's state before the first round. It never leaves the client."""

    def client_update(
        self, payload: Payload, client: ClientState, settings: Block
    ) -> Payload | None:
        """Does one round at a client.

        Args:
            payload: the server's broadcast and instructions.
            client: the client's state, which may change.
            settings: those of the run.

        Returns:
            The client's answer, or None if it has left for want of budget.
        """

    def server_step(self, state: ServerState, replies: list[Reply]) -> ServerState:
        """Returns the next state of the server from one or more replies, sorted by client."""


def load(method: str) -> Algorithm:
    """Returns the algorithm of a method. MAML's library alone takes seconds to import."""
    return importlib.import_module(f"pipelines.federation.algorithms.{methods.module(method)}")


def first_state(algorithm: Algorithm, task: Task, settings: Block) -> ServerState:
    """Returns the server's state before the first round, with its warm start if it has one.

    Args:
        algorithm: The one to run.
        task: What it trains on; the sets themselves for a warm start.
        settings: Those of the run.
    """
    state = algorithm.server(task, settings)
    warm_start = getattr(algorithm, "warm_start", None)
    weights = warm_start(task, settings) if warm_start else None
    return state if weights is None else replace(state, weights=weights)


def at_server(algorithm: Algorithm, settings: Block) -> bool:
    """Returns whether the server runs all rounds alone, on the sets that it has gathered."""
    return hasattr(algorithm, "at_server") and algorithm.at_server(settings)


def gathers_sets(algorithm: Algorithm, settings: Block) -> bool:
    """Returns whether the server must hold all clients' exported sets before the first round."""
    if hasattr(algorithm, "gathers_sets"):
        return algorithm.gathers_sets(settings)
    return shares_sets(algorithm)


def shares_sets(algorithm: Algorithm) -> bool:
    """Returns whether every client must hold all clients' synthetic sets before the first round."""
    return getattr(algorithm, "SHARES_SETS", False)
