"""SCAFFOLD (Karimireddy et al. 2020): control variates correct each client's drift.

A client steps along g - c_client + c; its new variate is option II of the paper's Algorithm 1, c_client - c +
(w - w_client) / (K learning rate), K the steps taken. Server: weights by size of set, as FedAvg (the paper's mean is
uniform; equal sets make no difference), c moved by the mean change of the variates. Both sides' variates start at 0,
where the first round is FedAvg's. A client keeps its variate from round to round; plain SGD, for momentum would make
the variate no mean of gradients.
"""

from dataclasses import dataclass

import numpy as np
import torch

from pipelines.blocks.training import LocalSgd
from pipelines.federation.local import Local, sgd
from pipelines.federation.messages import Payload, Reply, Server, by_images, weighted_mean
from pipelines.federation.task import Task
from pipelines.training.tensors import State, state_of

REMEMBERS = True  # `memory` comes back in the next round
CONTROL = "control."  # before the names of variates, in what is sent


@dataclass(frozen=True)
class Scaffold(Server):
    control: State  # c
    clients: int  # N: of all clients, whether they answer or not

    @property
    def sent(self) -> State:
        return {**self.weights, **_named(self.control)}


def server(task: Task, settings: LocalSgd) -> Scaffold:
    weights = task.start()
    return Scaffold(weights, _zeros(weights), len(task.data))


def client_update(payload: Payload, *, local: Local, settings: LocalSgd, memory: State | None) -> tuple[Payload, State]:
    """(the weights and the change of the client's variate, the variate to remember)."""
    weights, control = _parted(payload.arrays)
    own = memory if memory is not None else _zeros(weights)
    on = next(local.model.parameters()).device
    drift = [torch.as_tensor(control[name] - own[name]).to(on) for name, _ in local.model.named_parameters()]

    def straighten(parameters) -> None:
        for parameter, correction in zip(parameters, drift, strict=True):
            parameter.grad.add_(correction)

    done = sgd(local, weights, settings, payload.scalars["round"], straighten)
    reached = state_of(local.model)
    per_step = 1 / (done["steps"] * settings.learning_rate)
    renewed = {name: own[name] - control[name] + per_step * (weights[name] - reached[name]) for name in weights}
    change = {name: renewed[name] - own[name] for name in weights}
    return Payload({**reached, **_named(change)}, done), renewed


def server_step(state: Scaffold, replies: list[Reply]) -> Scaffold:
    sizes = by_images(replies)
    weights, _ = _parted(weighted_mean(replies, sizes))
    _, change = _parted(weighted_mean(replies, [1.0] * len(replies)))
    share = len(replies) / state.clients
    control = {name: array + share * change[name] for name, array in state.control.items()}
    return Scaffold(weights, control, state.clients)


def _zeros(weights: State) -> State:
    return {name: np.zeros_like(array) for name, array in weights.items()}


def _named(control: State) -> State:
    return {CONTROL + name: array for name, array in control.items()}


def _parted(arrays: State) -> tuple[State, State]:
    """(weights, variates)."""
    variates = {name.removeprefix(CONTROL): array for name, array in arrays.items() if name.startswith(CONTROL)}
    return {name: array for name, array in arrays.items() if not name.startswith(CONTROL)}, variates
