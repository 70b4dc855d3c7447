"""FedAvg (McMahan et al. 2017): local SGD epochs, then the mean of the weights by size of set."""

from dataclasses import replace

from pipelines.config.training import LocalSgd
from pipelines.federation.core.local_sgd import Local, sgd
from pipelines.federation.core.messages import Payload, Reply, Server, by_images, weighted_mean
from pipelines.federation.core.task import Task
from pipelines.training.tensors import state_of


def server(task: Task, settings: LocalSgd) -> Server:
    return Server(task.start())


def client_update(payload: Payload, *, local: Local, settings: LocalSgd) -> Payload:
    """`local_epochs` of SGD from the global model; replies with the weights and the size of the set."""
    done = sgd(local, payload.arrays, settings, payload.scalars["round"])
    return Payload(state_of(local.model), done)


def server_step(state: Server, replies: list[Reply]) -> Server:
    return replace(state, weights=weighted_mean(replies, by_images(replies)))
