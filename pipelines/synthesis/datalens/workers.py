"""The teachers in processes of their own: each owns its blocks, records and optimisers for the whole run.

Per step the fakes go out and integer vote sums come back. One thread per process: small products gain nothing from
threads, and threads would round differently. How many processes is no parameter of the run, for it changes no byte;
FEDLENS_WORKERS sets it, the cores of this machine otherwise.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.synthesis.datalens import machines
from pipelines.synthesis.datalens.ensemble import Ensemble, Recipe
from pipelines.synthesis.datalens.shares import answered, shares, unanswered
from pipelines.synthesis.datalens.teacher_block import Ballot

LEAST_WEIGHTS = 5_000_000  # of all teachers: below, starting processes takes longer than the run


@contextmanager
def assembled(
    recipe: Recipe, shard: Images, owner: np.ndarray, ballot: Ballot
) -> Iterator["Ensemble | Workers"]:
    """The teachers, in this process, in several, or on several machines; they end with the block."""
    if machines.several():
        with machines.together() as group:
            group.start(recipe, shard, owner, ballot)
            yield group
        return
    count = wanted(recipe)
    if count == 1:
        yield Ensemble(recipe, shard, owner, ballot)
        return
    workers = Workers(count)
    try:
        workers.start(recipe, shard, owner, ballot)
        yield workers
    finally:
        workers.stop()


def wanted(recipe: Recipe) -> int:
    """How many processes: one for a GPU or few teachers, never more than there are blocks.

    Raises:
        UserError: FEDLENS_WORKERS is no positive integer.
    """
    asked = os.environ.get("FEDLENS_WORKERS", "auto")
    if asked != "auto" and not (asked.isdecimal() and int(asked) > 0):
        raise UserError(
            f"The environment variable FEDLENS_WORKERS must be auto or a positive int. Got {asked!r} instead."
        )
    if recipe.device != "cpu":
        return 1
    if asked == "auto":
        weights = recipe.count * sum(
            parameter.numel() for parameter in recipe.teacher().parameters()
        )
        asked = len(os.sched_getaffinity(0)) if weights >= LEAST_WEIGHTS else 1
    return min(int(asked), len(recipe.blocks))


class Workers:
    """An Ensemble cut over `count` processes; the same three methods."""

    def __init__(self, count: int):
        context = multiprocessing.get_context("spawn")
        self.connections, self.processes = [], []
        for number in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs,), daemon=True, name=f"teachers-{number}"
            )
            process.start()
            theirs.close()
            self.connections.append(ours)
            self.processes.append(process)

    def start(self, recipe: Recipe, shard: Images, owner: np.ndarray, ballot: Ballot) -> None:
        self._ask(shares(recipe, shard, owner, ballot, len(self.processes)))

    def poll(self, fakes: np.ndarray, labels: np.ndarray, training: int) -> np.ndarray:
        return sum(self._ask([("poll", fakes, labels, training)] * len(self.processes)))

    def save(self, folder: Path) -> None:
        self._ask([("save", folder)] * len(self.processes))

    def load(self, folder: Path) -> None:
        self._ask([("load", folder)] * len(self.processes))

    def stop(self) -> None:
        """At once: what is worth keeping was saved."""
        for process, connection in zip(self.processes, self.connections):
            connection.close()
            process.terminate()
        for process in self.processes:
            process.join()

    def _ask(self, questions: list[tuple]) -> list:
        """All questions go out before an answer is read; a process that is gone or failed raises and never hangs."""
        try:
            for connection, question in zip(self.connections, questions):
                connection.send(question)
            answers = [connection.recv() for connection in self.connections]
        except (EOFError, OSError):
            raise unanswered() from None
        for failure, _ in answers:
            if isinstance(failure, Exception):
                raise failure
        return [answer for _, answer in answers]


def _serve(connection) -> None:
    """The life of a worker: its part of the teachers first, then a method of Ensemble per message."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    ensemble = None
    while True:
        try:
            question = connection.recv()
        except (EOFError, OSError):
            return
        ensemble, answer = answered(ensemble, question)
        connection.send(answer)


def _end_with_parent() -> None:
    """A parent that was killed closes its pipe, but a step may take minutes: leave at once."""
    multiprocessing.parent_process().join()
    os._exit(1)
