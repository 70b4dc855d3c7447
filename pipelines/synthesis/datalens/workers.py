"""Runs the teachers in processes of their own, each with its blocks, records and optimisers.

Per step the fakes go out and integer vote sums come back. One thread per process: small products
gain nothing from threads, and threads would round differently. How many processes run is no
parameter, for it changes no byte. FEDLENS_WORKERS sets it; by default it is the number of cores.
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
from pipelines.synthesis.datalens.ensemble import (
    Ensemble,
    Recipe,
    answered,
    contents,
    shares,
    unanswered,
)
from pipelines.synthesis.datalens.teacher_block import Ballot

# of all teachers: below, starting processes takes longer than the run
LEAST_WEIGHTS = 5_000_000


@contextmanager
def assembled(
    recipe: Recipe, shard: Images, owner: np.ndarray, ballot: Ballot, beside: int = 1
) -> Iterator["Ensemble | Workers | machines.Machines"]:
    """Yields the teachers: in this process, in several, or on several machines.

    Their processes end with the block.

    Args:
        recipe: What the teachers are made from.
        shard: All records.
        owner: int64 [n], the teacher of each record.
        ballot: How image gradients become a vote.
        beside: How many such ensembles share the cores of this machine.
    """
    if machines.several():
        with machines.together() as group:
            group.start(recipe, shard, owner, ballot)
            yield group
        return
    count = max(1, wanted(recipe) // beside)
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
    """Returns how many processes to run: one for a GPU or few teachers, at most one per block.

    Raises:
        UserError: FEDLENS_WORKERS is no positive integer.
    """
    setting = os.environ.get("FEDLENS_WORKERS", "auto")
    if setting != "auto" and not (setting.isdecimal() and int(setting) > 0):
        raise UserError(
            "The environment variable FEDLENS_WORKERS must be auto or a positive int. "
            f"Got {setting!r} instead."
        )
    if recipe.device != "cpu":
        return 1
    if setting != "auto":
        return min(int(setting), len(recipe.blocks))
    weights = recipe.count * sum(map(torch.numel, recipe.teacher().parameters()))
    if weights < LEAST_WEIGHTS:
        return 1
    return min(len(os.sched_getaffinity(0)), len(recipe.blocks))


class Workers:
    """Cuts an Ensemble over processes of this machine, with the same methods.

    Args:
        count: The number of processes.
    """

    def __init__(self, count: int):
        context = multiprocessing.get_context("spawn")
        self.connections = []
        self.processes = []
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
        """Sends every process its teachers and their records.

        Args:
            recipe: What the teachers are made from.
            shard: All records.
            owner: int64 [n], the teacher of each record.
            ballot: How image gradients become a vote.
        """
        self._ask(shares(recipe, shard, owner, ballot, len(self.processes)))

    def poll(self, fakes: np.ndarray, labels: np.ndarray, training: int) -> np.ndarray:
        """Returns the vote sums of all teachers.

        Args:
            fakes: float32 [B, C, H, W] in [0, 1].
            labels: int64 [B].
            training: Training steps of every teacher before it votes.

        Returns:
            int64 [B, d].
        """
        return sum(self._ask([("poll", fakes, labels, training)] * len(self.processes)))

    def save(self, folder: Path) -> None:
        """Lets every process write the states of its teachers."""
        self._ask([("save", folder)] * len(self.processes))

    def load(self, folder: Path) -> None:
        """Lets every process read the states of its teachers."""
        self._ask([("load", folder)] * len(self.processes))

    def stop(self) -> None:
        """Ends the processes at once: what is worth keeping was saved."""
        for process, connection in zip(self.processes, self.connections):
            connection.close()
            process.terminate()
        for process in self.processes:
            process.join()

    def _ask(self, questions: list[tuple]) -> list:
        """Sends all questions before it reads an answer.

        A process that is gone or failed raises, and never hangs.
        """
        try:
            for connection, question in zip(self.connections, questions):
                connection.send(question)
            answers = [connection.recv() for connection in self.connections]
        except (EOFError, OSError):
            raise unanswered() from None
        return contents(answers)


def _serve(connection) -> None:
    """Runs a worker: it receives its teachers, then a method of Ensemble per message."""
    # the parent gets an interruption too, and ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
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
    """Ends this process as soon as its parent is gone.

    A parent that was killed closes its pipe, but a step may take minutes.
    """
    multiprocessing.parent_process().join()
    os._exit(1)
