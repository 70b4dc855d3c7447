"""Runs one client's teachers on several of its own machines, carried by torch.distributed (gloo).

On a helper:

    RANK=1 WORLD_SIZE=2 MASTER_ADDR=.. MASTER_PORT=.. python -m pipelines.synthesis.datalens.machines

At the shard:

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=.. MASTER_PORT=.. dvc repro train_generator@..

The machine with the shard is rank 0. It sends each helper the records of that helper's teachers,
then the fakes of each step, and adds up integer vote sums. So neither the number of machines nor
their speed changes a byte, as long as they are of one kind. Rank 0 alone draws noise and writes
checkpoints. gloo neither encrypts nor checks who calls, **private records cross, and whoever
reaches the port can run code**: all of it belongs into one owner's own network, behind its
firewall. A helper serves one run and ends.
"""

import datetime
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from pipelines.datasets.labelled_images import Images
from pipelines.errors import told_in_a_sentence
from pipelines.synthesis.datalens import ensemble
from pipelines.synthesis.datalens.ensemble import Recipe, answered, contents, shares, unanswered
from pipelines.synthesis.datalens.teacher_block import Ballot

# of a step, and of a helper for the run to begin
PATIENCE = datetime.timedelta(hours=6)


def several() -> bool:
    """Returns True if torch's own variables say that this process is one of a group."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def together() -> Iterator["Machines"]:
    """Opens the group as rank 0 until the block ends; the helpers end then, too."""
    dist.init_process_group("gloo", timeout=PATIENCE)
    group = Machines(dist.get_world_size())
    try:
        yield group
    finally:
        group.stop()


class Machines:
    """Cuts an Ensemble over processes anywhere, this one among them, with the same methods.

    Args:
        count: The number of processes.
    """

    def __init__(self, count: int):
        self.count = count
        self.local = None
        self.broken = False

    def start(self, recipe: Recipe, shard: Images, owner: np.ndarray, ballot: Ballot) -> None:
        """Sends every machine its teachers and their records.

        Args:
            recipe: What the teachers are made from.
            shard: All records.
            owner: int64 [n], the teacher of each record.
            ballot: How image gradients become a vote.
        """
        self.blocks = recipe.blocks
        self._ask(shares(recipe, shard, owner, ballot, self.count))

    def poll(self, fakes: np.ndarray, labels: np.ndarray, training: int) -> np.ndarray:
        """Returns the vote sums of all teachers.

        Args:
            fakes: float32 [B, C, H, W] in [0, 1].
            labels: int64 [B].
            training: Training steps of every teacher before it votes.

        Returns:
            int64 [B, d].
        """
        return sum(self._ask([("poll", fakes, labels, training)] * self.count))

    def save(self, folder: Path) -> None:
        """Writes the states of all teachers on this machine."""
        for states in self._ask([("states",)] * self.count):
            ensemble.write(folder, states)

    def load(self, folder: Path) -> None:
        """Reads the states of all teachers and sends each machine its part."""
        states = ensemble.read(folder, self.blocks)
        questions = []
        for rank in range(self.count):
            blocks = self.blocks[rank :: self.count]
            questions.append(("restore", {number: states[number] for number in blocks}))
        self._ask(questions)

    def stop(self) -> None:
        """Ends the helpers and the group."""
        if not self.broken:
            _scattered([None] * self.count)
        dist.destroy_process_group()

    def _ask(self, questions: list[tuple]) -> list:
        """Sends all questions, answers one here, and returns all answers.

        Raises:
            UserError: A machine is gone.
        """
        # until all have answered: an interruption between would leave the helpers in another call
        self.broken = True
        try:
            self.local, answer = answered(self.local, _scattered(questions))
            answers = [None] * self.count
            dist.gather_object(answer, answers)
        except RuntimeError:
            # gloo's word for a closed connection
            raise unanswered() from None
        self.broken = False
        return contents(answers)


def serve() -> None:
    """Runs a helper: it receives its teachers, then a method of Ensemble per message.

    It ends when None comes.
    """
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=PATIENCE)
    local = None
    while (question := _scattered(None)) is not None:
        local, answer = answered(local, question)
        dist.gather_object(answer)
    dist.destroy_process_group()


def _scattered(questions: list | None) -> tuple | None:
    """Returns this process's question; rank 0 passes all of them."""
    received = [None]
    dist.scatter_object_list(received, questions)
    return received[0]


if __name__ == "__main__":
    with told_in_a_sentence():
        serve()
