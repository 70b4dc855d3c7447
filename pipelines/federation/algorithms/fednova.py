"""FedNova (Wang et al. 2020): each client's change is divided by the steps it took before the changes are averaged.

With momentum rho, tau local steps are worth a = (tau - rho (1 - rho^tau) / (1 - rho)) / (1 - rho) plain ones; without,
a = tau. The server applies w - (sum p_c a_c) sum p_c (w - w_c) / a_c, p_c by size of set: clients that took more steps
pull no harder. For equal steps this is FedAvg.
"""

from dataclasses import dataclass, replace

from pipelines.config.training import LocalSgd
from pipelines.federation.algorithms import fedavg
from pipelines.federation.core.messages import Reply, ServerState, by_images, counted
from pipelines.federation.core.task import Task

TELLS = fedavg.TELLS
client = fedavg.client
client_update = fedavg.client_update


@dataclass(frozen=True)
class NovaState(ServerState):
    """Holds the global model and the clients' momentum rho."""

    momentum: float


def server(task: Task, settings: LocalSgd) -> NovaState:
    """Returns the first model."""
    return NovaState(task.start(), settings.momentum)


def worth(steps: int, momentum: float) -> float:
    """Returns a: how many plain gradients `steps` of them with momentum are worth."""
    return (steps - momentum * (1 - momentum**steps) / (1 - momentum)) / (1 - momentum)


def server_step(state: NovaState, replies: list[Reply]) -> NovaState:
    """Applies w - (sum p_c a_c) sum p_c (w - w_c) / a_c."""
    sizes = by_images(replies)
    shares = [size / sum(sizes) for size in sizes]
    worths = [worth(steps, state.momentum) for steps in counted(replies, "steps")]
    effective = sum(share * a for share, a in zip(shares, worths))
    weights = {}
    for name, array in state.weights.items():
        change = sum(
            share / a * (array - reply.payload.arrays[name])
            for share, a, reply in zip(shares, worths, replies)
        )
        weights[name] = array - effective * change
    return replace(state, weights=weights)
