"""One model on all exported sets, trained at the server that has gathered them. There is no round.

It is PPPFL's warm start, and nothing after it.
"""

from pipelines.config.training import Pooled
from pipelines.federation.core.gathered import trained_on_all
from pipelines.federation.core.local_sgd import Local
from pipelines.federation.core.messages import Payload, Reply, ServerState
from pipelines.federation.core.task import Task
from pipelines.training.tensors import State

TELLS = {}


def at_server(settings: Pooled) -> bool:
    """Returns True: clients are asked for their sets alone."""
    return True


def gathers_sets(settings: Pooled) -> bool:
    """Returns True: whoever trains holds all sets."""
    return True


def warm_start(task: Task, settings: Pooled) -> State:
    """Returns the model."""
    return trained_on_all(task, settings)


def server(task: Task, settings: Pooled) -> ServerState:
    """Returns the untrained model, which the warm start replaces."""
    return ServerState(task.start())


def client(task: Task, name: str, settings: Pooled) -> Local:
    """Returns a client's set beside its model."""
    return task.local(name)


def client_update(payload: Payload, client: Local, settings: Pooled) -> Payload | None:
    """Returns None: no client is asked for anything but its set."""
    return None


def server_step(state: ServerState, replies: list[Reply]) -> ServerState:
    """Returns the state as it is: there is no round."""
    return state
