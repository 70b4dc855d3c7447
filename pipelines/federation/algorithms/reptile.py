"""Reptile (Nichol et al. 2018) across clients: the initial model moves towards the mean of the adapted ones.

w <- w + rate(t) mean_c (w_c - w), every client alike, the rate falling linearly to 0 over the rounds, as in the
authors' experiments. At rate 1 throughout and equal sets it is FedAvg.
"""

from dataclasses import dataclass, replace

from pipelines.config.training import Reptile
from pipelines.federation.algorithms import fedavg
from pipelines.federation.core.messages import Reply, ServerState, weighted_mean
from pipelines.federation.core.task import Task

TELLS = fedavg.TELLS
client = fedavg.client
client_update = fedavg.client_update


@dataclass(frozen=True)
class ReptileState(ServerState):
    """Holds the initial model, the settings, and how many rounds are done."""

    settings: Reptile
    round: int = 0


def server(task: Task, settings: Reptile) -> ReptileState:
    """Returns the first model."""
    return ReptileState(task.start(), settings)


def server_step(state: ReptileState, replies: list[Reply]) -> ReptileState:
    """Moves the model towards the plain mean of the adapted ones, by the rate of the round."""
    rate = state.settings.outer_learning_rate * (1 - state.round / state.settings.rounds)
    mean = weighted_mean(replies, [1.0] * len(replies))
    weights = {name: array + rate * (mean[name] - array) for name, array in state.weights.items()}
    return replace(state, weights=weights, round=state.round + 1)
