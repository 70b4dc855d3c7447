"""All teachers of a run, cut into blocks of a fixed number.

A block is the unit of everything: of arithmetic (matrix products may round differently at another width), of random
numbers (each block has a stream of its own), of checkpoints, and of what a worker process owns. So neither the number
of processes nor the order in which they answer changes a byte of the votes, which are sums of integers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from models.teachers import TEACHERS, Teacher
from pipelines import seeds
from pipelines.datasets.labelled_images import Images
from pipelines.files import read_arrays, write_arrays
from pipelines.synthesis.datalens.teacher_block import Ballot, Block
from pipelines.training.tensors import State

SIZES = {
    "cpu": 16,
    "cuda": 512,
}  # teachers per block: enough work per call, and on a CPU still within its caches


@dataclass(frozen=True)
class Recipe:
    """What all teachers are made from.

    Attributes:
        network: a key of models.teachers.TEACHERS.
        wrong_labels: as in Block.
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
        return SIZES[self.device]

    @property
    def blocks(self) -> range:
        return range(-(-self.count // self.size))

    def teacher(self) -> Teacher:
        return TEACHERS[self.network](self.shape, self.classes, self.hidden)


class Ensemble:
    """Some blocks of the teachers, in this process.

    Args:
        shard, owner: records of these blocks (others are left out) and the teacher of each, in [0, recipe.count).
        ballot: how image gradients become a vote (votes.vote with its settings bound).
        numbers: which blocks; all by default.
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
        numbers = recipe.blocks if numbers is None else numbers
        self.blocks = {number: _block(recipe, shard, owner, number) for number in numbers}
        self.device = recipe.device

    def poll(self, fakes: np.ndarray, labels: np.ndarray, training: int) -> np.ndarray:
        """int64 [B, d]: the vote sums on fakes float32 [B, C, H, W] of labels int64 [B], after `training` steps of
        every teacher on them. One block after the other: its weights stay in the cache, and no more than its own
        gradients [N, B, d] are ever in memory."""
        on_device = (
            torch.tensor(fakes, device=self.device),
            torch.tensor(labels, device=self.device),
        )
        return sum(block.poll(*on_device, training, self.ballot) for block in self.blocks.values())

    def states(self) -> dict[int, State]:
        """Of each block by its number."""
        return {number: block.state() for number, block in self.blocks.items()}

    def restore(self, states: dict[int, State]) -> None:
        for number, block in self.blocks.items():
            block.restore(states[number])

    def save(self, folder: Path) -> None:
        write(folder, self.states())

    def load(self, folder: Path) -> None:
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
    """A file per block: how many processes wrote them does not show."""
    for number, state in states.items():
        write_arrays(_file(folder, number), state)


def read(folder: Path, numbers: Iterable[int]) -> dict[int, State]:
    return {number: read_arrays(_file(folder, number)) for number in numbers}


def _file(folder: Path, number: int) -> Path:
    return folder / f"block-{number:05d}.safetensors"
