"""FedAvg (McMahan et al. 2017): local SGD epochs, then the mean of the weights by size of set."""

from dataclasses import replace

from pipelines.config.training import LocalSgd
from pipelines.federation.core import local_sgd
from pipelines.federation.core.local_sgd import Local
from pipelines.federation.core.messages import (
    Payload,
    Reply,
    ServerState,
    by_images,
    weighted_mean,
)
from pipelines.federation.core.task import Task
from pipelines.training.tensors import state_of

TELLS = local_sgd.TELLS


def server(task: Task, settings: LocalSgd) -> ServerState:
    """Returns the first model."""
    return ServerState(task.start())


def client(task: Task, name: str, settings: LocalSgd) -> Local:
    """Returns a client's records beside its model. It remembers nothing from round to round."""
    return task.local(name)


def client_update(payload: Payload, client: Local, settings: LocalSgd) -> Payload:
    """Replies with the weights after `local_epochs` of SGD, and the size of the set."""
    done = local_sgd.sgd(client, payload.arrays, settings, payload.scalars["round"])
    return Payload(state_of(client.model), done)


def server_step(state: ServerState, replies: list[Reply]) -> ServerState:
    """Takes the mean of the clients' weights by the size of their sets."""
    return replace(state, weights=weighted_mean(replies, by_images(replies)))
