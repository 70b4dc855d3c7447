"""SCAFFOLD (Karimireddy et al. 2020): control variates correct each client's drift.

A client steps along g - c_client + c; its new variate is option II of the paper's Algorithm 1, c_client - c +
(w - w_client) / (K learning rate), K the steps taken. Server: weights by size of set, as FedAvg (the paper's mean is
uniform; equal sets make no difference), c moved by the mean change of the variates. Both sides' variates start at 0,
where the first round is FedAvg's. A client keeps its variate from round to round; plain SGD, for momentum would make
the variate no mean of gradients.
"""

from dataclasses import dataclass, replace

import torch

from pipelines.config.training import LocalSgd
from pipelines.federation.core import local_sgd
from pipelines.federation.core.control_variates import moved, named, parted, zeros
from pipelines.federation.core.local_sgd import Local
from pipelines.federation.core.messages import (
    ClientState,
    Payload,
    Reply,
    ServerState,
    by_images,
    weighted_mean,
)
from pipelines.federation.core.task import Task
from pipelines.training.tensors import State, state_of

TELLS = local_sgd.TELLS


@dataclass(frozen=True)
class ScaffoldServer(ServerState):
    """Holds the global model, the server's variate c, and the number of all clients.

    `clients` counts a client whether it answers or not: N of the paper.
    """

    control: State
    clients: int

    @property
    def broadcast(self) -> State:
        """Returns the weights and the server's variate."""
        return {**self.weights, **named(self.control)}


@dataclass
class ScaffoldClient(ClientState):
    """Holds a client's records, and its variate c_client."""

    local: Local
    variate: State

    @property
    def memory(self) -> State:
        """Returns the variate."""
        return self.variate

    def restore(self, memory: State) -> None:
        """Brings the variate back."""
        self.variate = memory


def server(task: Task, settings: LocalSgd) -> ScaffoldServer:
    """Returns the first model, with a variate of zeros."""
    weights = task.start()
    return ScaffoldServer(weights, zeros(weights), len(task.data))


def client(task: Task, name: str, settings: LocalSgd) -> ScaffoldClient:
    """Returns a client with a variate of zeros."""
    local = task.local(name)
    return ScaffoldClient(local, zeros(state_of(local.model)))


def client_update(payload: Payload, client: ScaffoldClient, settings: LocalSgd) -> Payload:
    """Replies with the weights and the change of the client's variate, which the client keeps."""
    weights, control = parted(payload.arrays)
    model = client.local.model
    variate = client.variate
    on = next(model.parameters()).device
    drift = [
        torch.as_tensor(control[name] - variate[name]).to(on)
        for name, _ in model.named_parameters()
    ]

    def straighten(parameters) -> None:
        for parameter, correction in zip(parameters, drift, strict=True):
            parameter.grad.add_(correction)

    done = local_sgd.sgd(client.local, weights, settings, payload.scalars["round"], straighten)
    reached = state_of(model)
    per_step = 1 / (done["steps"] * settings.learning_rate)
    renewed = {
        name: variate[name] - control[name] + per_step * (weights[name] - reached[name])
        for name in weights
    }
    change = {name: renewed[name] - variate[name] for name in weights}
    client.variate = renewed
    return Payload({**reached, **named(change)}, done)


def server_step(state: ScaffoldServer, replies: list[Reply]) -> ScaffoldServer:
    """Averages the weights, and moves c by the mean change of the clients' variates."""
    sizes = by_images(replies)
    weights, _ = parted(weighted_mean(replies, sizes))
    _, change = parted(weighted_mean(replies, [1.0] * len(replies)))
    share = len(replies) / state.clients
    return replace(state, weights=weights, control=moved(state.control, change, share))
