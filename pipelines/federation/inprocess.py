"""The default engine: every client in this process, one after the other or in shared passes."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from pipelines.config.values import Block
from pipelines.federation.algorithms import base
from pipelines.federation.algorithms.base import Algorithm
from pipelines.federation.core import checkpoints, rounds
from pipelines.federation.core.gathered import at_one_place
from pipelines.federation.core.messages import ClientState, Payload, Reply
from pipelines.federation.core.task import Task
from pipelines.files import standard
from pipelines.training.tensors import state_of

Handler = Callable[[Payload], Payload | None]


class InProcess:
    """Asks each client in turn, sorted by name.

    Args:
        handlers: each client's `client_update` with its state bound. None as an answer means that the
            client has left.
        states: the clients' states, whose memories a checkpoint keeps.
    """

    def __init__(
        self, handlers: dict[str, Handler], states: Mapping[str, ClientState] | None = None
    ):
        self.handlers = handlers
        self.states = states or {}

    def call(self, payload: Payload) -> list[Reply]:
        """Returns the replies of the clients that have not left."""
        answers = sorted(self.answers(payload))
        return [Reply(client, answer) for client, answer in answers if answer is not None]

    def answers(self, payload: Payload) -> Iterable[tuple[str, Payload | None]]:
        """Yields each client's answer."""
        for client in sorted(self.handlers):
            yield client, self.handlers[client](payload)

    @property
    def memories(self) -> dict:
        """Returns what each client hands from round to round."""
        return {client: state.memory for client, state in sorted(self.states.items())}

    @memories.setter
    def memories(self, memories: dict) -> None:
        for client, memory in memories.items():
            self.states[client].restore(memory)


class SharedPass(InProcess):
    """Asks all clients at once, by an algorithm's `update_all`.

    Args:
        update_all: does a round of all clients, with the settings bound.
        states: the clients' states.
    """

    def __init__(
        self,
        update_all: Callable[[Payload, Mapping[str, ClientState]], dict[str, Payload]],
        states: Mapping[str, ClientState],
    ):
        super().__init__({}, states)
        self.update_all = update_all

    def answers(self, payload: Payload) -> Iterable[tuple[str, Payload | None]]:
        """Returns the answers of the clients that have not left."""
        return self.update_all(payload, self.states).items()


def in_turn(algorithm: Algorithm, states: Mapping[str, ClientState], settings: Block) -> InProcess:
    """Returns an engine that asks each client by itself.

    Args:
        algorithm: whose `client_update` is asked.
        states: {client: its state}.
        settings: those of the run.
    """
    handlers = {}
    for client, state in states.items():
        handlers[client] = partial(algorithm.client_update, client=state, settings=settings)
    return InProcess(handlers, states)


def engine_of(
    algorithm: Algorithm, states: Mapping[str, ClientState], settings: Block
) -> InProcess:
    """Returns the engine of an algorithm's clients: in shared passes where it has them.

    Args:
        algorithm: the one to run.
        states: {client: its state}.
        settings: those of the run.
    """
    update_all = getattr(algorithm, "update_all", None)
    if update_all is None:
        return in_turn(algorithm, states, settings)
    return SharedPass(partial(update_all, settings=settings), states)


def in_process(algorithm: Algorithm, task: Task, settings: Block) -> InProcess:
    """Returns an engine with every client of a task at hand.

    Args:
        algorithm: the one to run.
        task: what it trains on.
        settings: those of the run.
    """
    states = {client: algorithm.client(task, client, settings) for client in sorted(task.data)}
    return engine_of(algorithm, states, settings)


def federate(
    method: str, task: Task, settings: Block, unfinished: Path | None = None
) -> rounds.History:
    """Runs a method over the task's clients, in this process.

    Args:
        method: its name, as in the parameters.
        task: what it trains on.
        settings: those of the run.
        unfinished: where a killed run left what it had.
    """
    algorithm = base.load(method)
    stamp = _stamp(method, task, settings) if unfinished else ""
    trained_on = at_one_place(task) if base.at_server(algorithm, settings) else task
    began = time.perf_counter()
    first = base.first_state(algorithm, trained_on, settings)
    history = rounds.run(
        first,
        algorithm.server_step,
        in_process(algorithm, trained_on, settings),
        rounds=settings.rounds,
        name=method,
        checkpoints=checkpoints.Checkpoints(unfinished, stamp=stamp),
        seconds_before=time.perf_counter() - began,
    )
    _add_cost_of_sets(history.cost, algorithm, task, settings)
    return history


def _add_cost_of_sets(cost: dict, algorithm: Algorithm, task: Task, settings: Block) -> None:
    """Adds the bytes of the sets that go to the server, and from there to all clients.

    An image has a byte per pixel and channel. A server that runs all rounds sends the last model alone.
    """
    images = sum(data.images.nbytes for data in task.data.values())
    if base.at_server(algorithm, settings):
        model = Payload(task.start()).bytes
        cost["bytes_up"] = 0
        cost["bytes_down"] = model * len(task.data)
    if base.gathers_sets(algorithm, settings):
        cost["bytes_up"] += images
    if base.shares_sets(algorithm):
        cost["bytes_down"] += images * len(task.data)


def _stamp(method: str, task: Task, settings: Block) -> str:
    """Returns a digest of all that the run's models follow from."""
    model = task.build()
    facts = [
        method,
        settings.model_dump(),
        task.epsilons,
        task.augmentation and task.augmentation.model_dump(),
        task.seed,
        sorted(task.data),
        str(next(model.parameters()).device),
    ]
    arrays = list(state_of(model).values())
    for _, data in sorted(task.data.items()):
        arrays += [data.images, data.labels]
    words = json.dumps(standard(facts), sort_keys=True).encode()
    return checkpoints.stamp(words, *(array.tobytes() for array in arrays))
