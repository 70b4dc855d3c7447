"""One client's teachers on several of its own machines, carried by torch.distributed (gloo).

    RANK=1 WORLD_SIZE=2 MASTER_ADDR=.. MASTER_PORT=.. python -m pipelines.synthesis.datalens.machines    # on a helper
    RANK=0 WORLD_SIZE=2 MASTER_ADDR=.. MASTER_PORT=.. dvc repro train_generator@..                       # at the shard

The machine with the shard is rank 0: it sends each helper the records of that helper's teachers, then the fakes of each
step, and adds up integer vote sums, so neither the number of machines nor their speed changes a byte, as long as they
are of one kind. It alone draws noise and writes checkpoints. gloo neither encrypts nor checks who calls, **private
records cross, and whoever reaches the port can run code**: all of it belongs into one owner's own network, behind its
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
from pipelines.synthesis.datalens.ensemble import Recipe
from pipelines.synthesis.datalens.shares import answered, shares, unanswered
from pipelines.synthesis.datalens.teacher_block import Ballot

PATIENCE = datetime.timedelta(hours=6)  # of a step, and of a helper for the run to begin


def several() -> bool:
    """Whether torch's own variables say that this process is one of a group."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def together() -> Iterator["Machines"]:
    """Rank 0's side, until the block ends; the helpers end then, too."""
    dist.init_process_group("gloo", timeout=PATIENCE)
    group = Machines(dist.get_world_size())
    try:
        yield group
    finally:
        group.stop()


class Machines:
    """An Ensemble cut over `count` processes anywhere, this one among them; the same three methods."""

    def __init__(self, count: int):
        self.count, self.own, self.broken = count, None, False

    def start(self, recipe: Recipe, shard: Images, owner: np.ndarray, ballot: Ballot) -> None:
        self.blocks = recipe.blocks
        self._ask(shares(recipe, shard, owner, ballot, self.count))

    def poll(self, fakes: np.ndarray, labels: np.ndarray, training: int) -> np.ndarray:
        return sum(self._ask([("poll", fakes, labels, training)] * self.count))

    def save(self, folder: Path) -> None:
        for states in self._ask([("states",)] * self.count):
            ensemble.write(folder, states)

    def load(self, folder: Path) -> None:
        states = ensemble.read(folder, self.blocks)
        own = [
            {number: states[number] for number in self.blocks[rank :: self.count]}
            for rank in range(self.count)
        ]
        self._ask([("restore", part) for part in own])

    def stop(self) -> None:
        if not self.broken:
            _scattered([None] * self.count)
        dist.destroy_process_group()

    def _ask(self, questions: list[tuple]) -> list:
        """All questions go out, one is answered here, and all answers are read.

        Raises:
            UserError: a machine is gone.
        """
        self.broken = True  # until all have answered: an interruption between would leave the helpers in another call
        try:
            self.own, answer = answered(self.own, _scattered(questions))
            answers = [None] * self.count
            dist.gather_object(answer, answers)
        except RuntimeError:  # gloo's word for a closed connection
            raise unanswered() from None
        self.broken = False
        for failure, _ in answers:
            if isinstance(failure, Exception):
                raise failure
        return [found for _, found in answers]


def serve() -> None:
    """A helper's life: its part of the teachers first, then a method of Ensemble per message, until None comes."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=PATIENCE)
    own = None
    while (question := _scattered(None)) is not None:
        own, answer = answered(own, question)
        dist.gather_object(answer)
    dist.destroy_process_group()


def _scattered(questions: list | None) -> tuple | None:
    """This process's question; rank 0 gives all of them."""
    mine = [None]
    dist.scatter_object_list(mine, questions)
    return mine[0]


if __name__ == "__main__":
    with told_in_a_sentence():
        serve()
