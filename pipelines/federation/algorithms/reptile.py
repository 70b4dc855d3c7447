"""Reptile (Nichol et al. 2018) across clients: the initial model moves towards the mean of the adapted ones.

w <- w + rate(t) mean_c (w_c - w), every client alike, the rate falling linearly to 0 over the rounds, as in the
authors' experiments. At rate 1 throughout and equal sets it is FedAvg.
"""

from dataclasses import dataclass, replace

from pipelines.config.training import Reptile
from pipelines.federation.algorithms import fedavg
from pipelines.federation.core.messages import Reply, Server, weighted_mean
from pipelines.federation.core.task import Task

client_update = fedavg.client_update


@dataclass(frozen=True)
class Init(Server):
    settings: Reptile
    round: int = 0


def server(task: Task, settings: Reptile) -> Init:
    return Init(task.start(), settings)


def server_step(state: Init, replies: list[Reply]) -> Init:
    rate = state.settings.outer_learning_rate * (1 - state.round / state.settings.rounds)
    mean = weighted_mean(replies, [1.0] * len(replies))
    weights = {name: array + rate * (mean[name] - array) for name, array in state.weights.items()}
    return replace(state, weights=weights, round=state.round + 1)
