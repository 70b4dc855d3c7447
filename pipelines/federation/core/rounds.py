"""The one loop that every federated algorithm runs in.

An algorithm is two pure functions and a small state: `client_update(payload, ...) -> payload`, bound to each client's
data by the caller and carried by an engine, and `server_step(state, replies) -> state`. The state says what is sent.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from tqdm import tqdm

from pipelines.federation.core.checkpoints import Journal, Progress
from pipelines.federation.core.messages import Engine, Payload, Reply, Server
from pipelines.training.tensors import State

# each client's own: their mean would be nobody's
OWN = ("epsilon_spent", "epsilon_by_pld", "noise_multiplier", "clipping_norm")


class History(NamedTuple):
    models: list[State]  # the global model before the first round and after each; or the last alone
    curves: list[
        dict
    ]  # one row per round: means of what clients told, or each one's own, and what the server told
    cost: dict  # {"rounds", "bytes_down": the last model, too, "bytes_up": both over all clients, "seconds"}


class Carried(NamedTuple):
    """What came of a run over a network.

    history: of the server; where the run went on without some clients, its cost has "lost", {client: why}. spent:
    {client: what its account came to}, of a noisy run.
    """

    history: History
    spent: dict[str, dict]


def run(
    state: Server,
    server_step: Callable[[Server, list[Reply]], Server],
    engine: Engine,
    *,
    rounds: int,
    name: str,
    last_alone: bool = False,
    journal: Journal | None = None,
) -> History:
    """Broadcast, collect, step; `rounds` times, or until no client answers.

    Args:
        last_alone: keep no model on the way.
        journal: where a run that was killed goes on from; the engine then has `memories`.
    """
    journal = journal or Journal()
    now, start = journal.back(Progress(state, [state.weights]), engine), time.perf_counter()
    before, done = now.cost["seconds"], now.cost["rounds"]
    bar = tqdm(range(done + 1, rounds + 1), name, rounds, initial=done, disable=None, mininterval=1)
    for number in bar:
        payload = Payload(now.state.sent, {"round": number, **now.state.asked})
        replies = engine.call(payload)
        if not replies:
            break
        _enter(now, payload, replies, server_step(now.state, replies), last_alone)
        now.cost["seconds"] = before + time.perf_counter() - start
        journal.keep(now, engine)
        bar.set_postfix_str(_progress(now.curves[-1]), refresh=False)
    cost = {**now.cost, "seconds": before + time.perf_counter() - start}
    cost["bytes_down"] += (
        Payload(now.state.weights).bytes * now.reached
    )  # to those, too, who left with their budget
    return History(now.models, now.curves, cost)


def _enter(
    now: Progress, payload: Payload, replies: list[Reply], state: Server, last_alone: bool
) -> None:
    """A round that was answered."""
    now.state = state
    if last_alone:
        now.models.clear()
    now.models.append(state.weights)
    now.curves.append({"round": payload.scalars["round"], **_told(replies), **state.told})
    now.cost["rounds"] = payload.scalars["round"]
    now.cost["bytes_down"] += payload.bytes * len(replies)
    now.cost["bytes_up"] += sum(reply.payload.bytes for reply in replies)
    now.reached = max(now.reached, len(replies))


def _progress(row: dict) -> str:
    """Returns what the bar shows of a round: its mean loss and accuracy, where clients tell them."""
    shown = ("train_loss", "query_loss", "query_accuracy", "public_loss", "public_accuracy")
    return ", ".join(f"{name.replace('_', ' ')} {row[name]:.3f}" for name in shown if name in row)


def _told(replies: list[Reply]) -> dict[str, float]:
    """Means over clients; of what is each one's own, "NAME.CLIENT"."""
    told = {reply.client: reply.payload.scalars for reply in replies}
    names = [name for name, value in replies[0].payload.scalars.items() if isinstance(value, float)]
    means = {
        name: sum(its[name] for its in told.values()) / len(told)
        for name in names
        if name not in OWN
    }
    own = {
        f"{name}.{client}": told[client][name] for name in OWN if name in names for client in told
    }
    return {**means, **own, "clients": len(replies)}
