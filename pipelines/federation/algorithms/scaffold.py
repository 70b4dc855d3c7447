"""SCAFFOLD (Karimireddy et al. 2020): control variates correct each client's drift.

A client steps along g - c_client + c; its new variate is option II of the paper's Algorithm 1, c_client - c +
(w - w_client) / (K learning rate), K the steps taken. Server: weights by size of set, as FedAvg (the paper's mean is
uniform; equal sets make no difference), c moved by the mean change of the variates. Both sides' variates start at 0,
where the first round is FedAvg's. A client keeps its variate from round to round; plain SGD, for momentum would make
the variate no mean of gradients.
"""

from dataclasses import dataclass

import torch

from pipelines.config.training import LocalSgd
from pipelines.federation.core.control_variates import moved, named, parted, zeros
from pipelines.federation.core.local_sgd import Local, sgd
from pipelines.federation.core.messages import Payload, Reply, Server, by_images, weighted_mean
from pipelines.federation.core.task import Task
from pipelines.training.tensors import State, state_of

REMEMBERS = True  # `memory` comes back in the next round


@dataclass(frozen=True)
class Scaffold(Server):
    control: State  # c
    clients: int  # N: of all clients, whether they answer or not

    @property
    def sent(self) -> State:
        return {**self.weights, **named(self.control)}


def server(task: Task, settings: LocalSgd) -> Scaffold:
    weights = task.start()
    return Scaffold(weights, zeros(weights), len(task.data))


def client_update(
    payload: Payload, *, local: Local, settings: LocalSgd, memory: State | None
) -> tuple[Payload, State]:
    """(the weights and the change of the client's variate, the variate to remember)."""
    weights, control = parted(payload.arrays)
    own = memory if memory is not None else zeros(weights)
    on = next(local.model.parameters()).device
    drift = [
        torch.as_tensor(control[name] - own[name]).to(on)
        for name, _ in local.model.named_parameters()
    ]

    def straighten(parameters) -> None:
        for parameter, correction in zip(parameters, drift, strict=True):
            parameter.grad.add_(correction)

    done = sgd(local, weights, settings, payload.scalars["round"], straighten)
    reached = state_of(local.model)
    per_step = 1 / (done["steps"] * settings.learning_rate)
    renewed = {
        name: own[name] - control[name] + per_step * (weights[name] - reached[name])
        for name in weights
    }
    change = {name: renewed[name] - own[name] for name in weights}
    return Payload({**reached, **named(change)}, done), renewed


def server_step(state: Scaffold, replies: list[Reply]) -> Scaffold:
    sizes = by_images(replies)
    weights, _ = parted(weighted_mean(replies, sizes))
    _, change = parted(weighted_mean(replies, [1.0] * len(replies)))
    share = len(replies) / state.clients
    return Scaffold(weights, moved(state.control, change, share), state.clients)
