"""The one loop that every federated algorithm runs in.

An algorithm is two functions and a small state: `client_update(payload, ...) -> payload`, bound to
each client by the caller and carried by an engine, and `server_step(state, replies) -> state`. The
state says what is sent.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from tqdm import tqdm

from pipelines.datasets.exports import Export
from pipelines.federation.core.checkpoints import Checkpoints, Progress
from pipelines.federation.core.messages import Engine, Payload, Reply, ServerState
from pipelines.training.tensors import State

# a mean of these over clients would be nobody's
PER_CLIENT = ("epsilon_spent", "epsilon_by_pld", "noise_multiplier", "clipping_norm")
SHOWN = ("train_loss", "query_loss", "query_accuracy", "public_loss", "public_accuracy")


class History(NamedTuple):
    """Holds what came of all rounds.

    Attributes:
        models: the global model before the first round and after each; or the last alone.
        curves: one row per round: means of the clients' scalars, or each client's, and the
            server's metrics.
        cost: {"rounds", "bytes_down", with the last model, "bytes_up", both over all clients,
            "seconds"}.
    """

    models: list[State]
    curves: list[dict]
    cost: dict


class NetworkRun(NamedTuple):
    """Holds what came of a run, over a network or in one process.

    Attributes:
        history: the server's. If the run went on without some clients, its cost has "lost",
            {client: why}.
        spent: {client: what its account came to}, of a noisy run.
        handed_in: {client: its exported set and card}, where the server gathered them.
    """

    history: History
    spent: dict[str, dict]
    handed_in: dict[str, Export]


def run(
    state: ServerState,
    server_step: Callable[[ServerState, list[Reply]], ServerState],
    engine: Engine,
    *,
    rounds: int,
    name: str,
    last_alone: bool = False,
    checkpoints: Checkpoints | None = None,
    seconds_before: float = 0.0,
) -> History:
    """Broadcasts, collects and steps, `rounds` times, or until no client answers.

    Args:
        state: the server's, before the first round.
        server_step: the next state from the clients' replies.
        engine: carries the messages.
        rounds: how many there are at most.
        name: of the run, for its progress bar.
        last_alone: keeps the last model only.
        checkpoints: where a killed run goes on from; the engine then has `memories`.
        seconds_before: what the first state took, which is part of the cost.
    """
    checkpoints = checkpoints or Checkpoints()
    now = checkpoints.restore(Progress(state, [state.weights]), engine)
    start = time.perf_counter()
    before = now.cost["seconds"]
    done = now.cost["rounds"]
    bar = tqdm(range(done + 1, rounds + 1), name, rounds, initial=done, disable=None, mininterval=1)
    for number in bar:
        payload = Payload(now.state.broadcast, {"round": number, **now.state.instructions})
        replies = engine.call(payload)
        if not replies:
            break
        _enter(now, payload, replies, server_step(now.state, replies), last_alone)
        now.cost["seconds"] = before + time.perf_counter() - start
        checkpoints.save(now, engine)
        bar.set_postfix_str(_progress(now.curves[-1]), refresh=False)
    seconds = seconds_before + before + time.perf_counter() - start
    cost = {**now.cost, "seconds": seconds}
    # the last model goes to those, too, who left with their budget
    cost["bytes_down"] += Payload(now.state.weights).bytes * now.reached
    return History(now.models, now.curves, cost)


def _enter(
    now: Progress, payload: Payload, replies: list[Reply], state: ServerState, last_alone: bool
) -> None:
    """Enters a round that was answered."""
    now.state = state
    if last_alone:
        now.models.clear()
    now.models.append(state.weights)
    now.curves.append({"round": payload.scalars["round"], **_metrics(replies), **state.metrics})
    now.cost["rounds"] = payload.scalars["round"]
    now.cost["bytes_down"] += payload.bytes * len(replies)
    now.cost["bytes_up"] += sum(reply.payload.bytes for reply in replies)
    now.reached = max(now.reached, len(replies))


def _progress(row: dict) -> str:
    """Returns what the bar shows of a round: its mean loss and accuracy, where there are some."""
    return ", ".join(f"{name.replace('_', ' ')} {row[name]:.3f}" for name in SHOWN if name in row)


def _metrics(replies: list[Reply]) -> dict[str, float]:
    """Returns the means over clients, and each client's own as "NAME.CLIENT"."""
    scalars = {reply.client: reply.payload.scalars for reply in replies}
    names = [name for name, value in replies[0].payload.scalars.items() if isinstance(value, float)]
    means = {}
    for name in names:
        if name not in PER_CLIENT:
            means[name] = sum(values[name] for values in scalars.values()) / len(scalars)
    each = {}
    for name in PER_CLIENT:
        if name in names:
            each |= {f"{name}.{client}": values[name] for client, values in scalars.items()}
    return {**means, **each, "clients": len(replies)}
