"""The one loop that every federated algorithm runs in.

An algorithm is two pure functions and a small state: `client_update(payload, ...) -> payload`, bound to each client's
data by the caller and carried by an engine, and `server_step(state, replies) -> state`. The state says what is sent.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from tqdm import tqdm

from pipelines.federation.messages import Engine, Payload, Reply
from pipelines.training.tensors import State


class ServerState(Protocol):
    @property
    def weights(self) -> State:
        """The current global model."""


class History(NamedTuple):
    models: list[State]  # the global model before the first round and after each
    curves: list[dict]  # one row per round: means over clients of the scalars they sent


def run(
    state: ServerState,
    server_step: Callable[[ServerState, list[Reply]], ServerState],
    engine: Engine,
    *,
    rounds: int,
    name: str,
) -> History:
    """Broadcast, collect, step; `rounds` times, or until no client answers."""
    models, curves = [state.weights], []
    for number in tqdm(range(1, rounds + 1), desc=name, disable=None, mininterval=1):
        replies = engine.call(Payload(state.weights, {"round": number}))
        if not replies:
            break
        state = server_step(state, replies)
        models.append(state.weights)
        curves.append({"round": number, **_means(replies)})
    return History(models, curves)


def _means(replies: list[Reply]) -> dict[str, float]:
    names = [name for name, value in replies[0].payload.scalars.items() if isinstance(value, float)]
    means = {name: sum(reply.payload.scalars[name] for reply in replies) / len(replies) for name in names}
    return {**means, "clients": len(replies)}
