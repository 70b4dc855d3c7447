"""Holds all teachers of a run, cut into blocks of a fixed number.

A block is the unit of everything: of arithmetic (matrix products may round differently at another
width), of random numbers (each block has a stream of its own), of checkpoints, and of what a worker
process owns. So neither the number of processes nor the order in which they answer changes a byte
of the votes, which are sums of integers.
"""

import multiprocessing
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from models.teachers import TEACHERS, Teacher
from pipelines import seeds
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.files import read_arrays, write_arrays
from pipelines.synthesis.datalens.teacher_block import Ballot, Block
from pipelines.training.tensors import State

# teachers per block: enough work per call, and on a CPU still within its caches
SIZES = {"cpu": 16, "cuda": 512}


@dataclass(frozen=True)
class Recipe:
    """Says what all teachers are made from.

    Attributes:
        network: A key of models.teachers.TEACHERS.
        shape: (height, width, channels) of an image.
        classes: The declared number of classes.
        hidden: The width of a teacher's hidden layers.
        count: The number N of teachers.
        learning_rate: Adam's learning rate.
        seed: The seed of weights and batches.
        wrong_labels: As in Block.
        device: cpu | cuda.
    """

    network: str
    shape: tuple[int, int, int]
    classes: int
    hidden: int
    count: int
    learning_rate: float
    seed: int
    wrong_labels: bool = False
    device: str = "cpu"

    @property
    def size(self) -> int:
        """Returns the number of teachers per block."""
        return SIZES[self.device]

    @property
    def blocks(self) -> range:
        """Returns the numbers of the blocks."""
        return range(-(-self.count // self.size))

    def teacher(self) -> Teacher:
        """Returns one teacher's network, without weights of its own."""
        return TEACHERS[self.network](self.shape, self.classes, self.hidden)


class Ensemble:
    """Runs some blocks of the teachers in this process.

    Args:
        recipe: What the teachers are made from.
        shard: The records of these blocks; others are left out.
        owner: int64 [n], the teacher of each record, in [0, recipe.count).
        ballot: How image gradients become a vote (votes.vote with its settings bound).
        numbers: Which blocks; all by default.
    """

    def __init__(
        self,
        recipe: Recipe,
        shard: Images,
        owner: np.ndarray,
        ballot: Ballot,
        numbers: range | None = None,
    ):
        self.ballot = ballot
        self.device = recipe.device
        self.blocks = {}
        for number in recipe.blocks if numbers is None else numbers:
            self.blocks[number] = _block(recipe, shard, owner, number)

    def poll(self, fakes: np.ndarray, labels: np.ndarray, training: int) -> np.ndarray:
        """Trains every teacher on fakes and returns the sums of their votes.

        One block follows the other: its weights stay in the cache, and no more than its own
        gradients [N, B, d] are ever in memory.

        Args:
            fakes: float32 [B, C, H, W] in [0, 1].
            labels: int64 [B].
            training: Training steps of every teacher before it votes.

        Returns:
            int64 [B, d].
        """
        images = torch.tensor(fakes, device=self.device)
        image_labels = torch.tensor(labels, device=self.device)
        total = 0
        for block in self.blocks.values():
            total = total + block.poll(images, image_labels, training, self.ballot)
        return total

    def states(self) -> dict[int, State]:
        """Returns the state of each block by its number."""
        return {number: block.state() for number, block in self.blocks.items()}

    def restore(self, states: dict[int, State]) -> None:
        """Puts back what `states` returned."""
        for number, block in self.blocks.items():
            block.restore(states[number])

    def save(self, folder: Path) -> None:
        """Writes the state of each block to a file of its own."""
        write(folder, self.states())

    def load(self, folder: Path) -> None:
        """Puts back what `save` wrote."""
        self.restore(read(folder, self.blocks))


def _block(recipe: Recipe, shard: Images, owner: np.ndarray, number: int) -> Block:
    start = number * recipe.size
    count = min(recipe.size, recipe.count - start)
    rows = np.flatnonzero((owner >= start) & (owner < start + count))
    return Block(
        recipe.teacher(),
        shard[rows],
        owner[rows] - start,
        count=count,
        learning_rate=recipe.learning_rate,
        seed=seeds.derive(recipe.seed, "teachers", number),
        wrong_labels=recipe.wrong_labels,
        device=recipe.device,
    )


def write(folder: Path, states: dict[int, State]) -> None:
    """Writes a file per block, so that the files do not show how many processes wrote them."""
    for number, state in states.items():
        write_arrays(_file(folder, number), state)


def read(folder: Path, numbers: Iterable[int]) -> dict[int, State]:
    """Reads the files of the blocks with these numbers."""
    return {number: read_arrays(_file(folder, number)) for number in numbers}


def _file(folder: Path, number: int) -> Path:
    return folder / f"block-{number:05d}.safetensors"


def shares(
    recipe: Recipe, shard: Images, owner: np.ndarray, ballot: Ballot, count: int
) -> list[tuple]:
    """Returns the arguments of Ensemble for each of several processes.

    Args:
        recipe: What the teachers are made from.
        shard: All records.
        owner: int64 [n], the teacher of each record.
        ballot: How image gradients become a vote.
        count: The number of processes.

    Returns:
        One tuple per process: with its blocks, and the records of these alone.
    """
    arguments = []
    for number in range(count):
        blocks = recipe.blocks[number::count]
        rows = np.flatnonzero(np.isin(owner // recipe.size, blocks))
        arguments.append((recipe, shard[rows], owner[rows], ballot, blocks))
    return arguments


def answered(
    ensemble: Ensemble | None, question: tuple
) -> tuple[Ensemble | None, tuple[Exception | None, object]]:
    """Answers a question within a process that holds some teachers.

    Args:
        ensemble: The teachers of this process; None before the first question.
        question: First the arguments of Ensemble, then a method's name and its arguments.

    Returns:
        The teachers, and the pair (what went wrong or None, the answer).
    """
    try:
        if ensemble is None:
            return Ensemble(*question), (None, None)
        return ensemble, (None, getattr(ensemble, question[0])(*question[1:]))
    except UserError as error:
        return ensemble, (error, None)
    except Exception:
        process = multiprocessing.current_process().name
        return ensemble, (RuntimeError(f"in {process}:\n{traceback.format_exc()}"), None)


def contents(answers: list[tuple[Exception | None, object]]) -> list:
    """Returns the answers of all processes, or raises what went wrong in the first that failed."""
    for failure, _ in answers:
        if isinstance(failure, Exception):
            raise failure
    return [content for _, content in answers]


def unanswered() -> UserError:
    """Returns the error of a process that is gone."""
    return UserError(
        "A process that trains teachers ended before its time, most often because memory ran out. "
        "Take fewer or smaller teachers (synthesis.datalens), then run again: it goes on from its "
        "last checkpoint."
    )
