"""Trains and polls a block: some teachers and their records, as stacked tensors [N, ...].

Adam is elementwise, so one optimiser over tensors [N, ...] is N optimisers with states of their
own: no teacher's update reads another's gradient. Batches are drawn with a stream that does not
depend on the data; removing a record changes what its own teacher draws and nothing else.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

from models import stacked
from models.teachers import Teacher
from pipelines.datasets.labelled_images import Images
from pipelines.synthesis.datalens import votes
from pipelines.training.tensors import State, packed, unpacked

# (image gradients [N, B, d], generator=) -> int8 ballots, same shape
Ballot = Callable[..., torch.Tensor]


class Block:
    """Holds teachers 0 to count - 1 and their shards.

    Args:
        teacher: The network that is stacked.
        shard: The records of these teachers.
        owner: int64 [n], the teacher of each record of `shard`, in [0, count).
        count: The number N of teachers.
        learning_rate: Adam's learning rate.
        seed: The seed of weights and batches.
        wrong_labels: True if a teacher must also reject its own records under other labels.
        device: Where weights and records lie.
    """

    def __init__(
        self,
        teacher: Teacher,
        shard: Images,
        owner: np.ndarray,
        *,
        count: int,
        learning_rate: float,
        seed: int,
        wrong_labels: bool = False,
        device: torch.device | str = "cpu",
    ):
        self.teacher = teacher
        self.count = count
        self.wrong_labels = wrong_labels and teacher.classes > 1
        self.generator = torch.Generator(device).manual_seed(seed)
        self.weights = stacked.initial(teacher, count, self.generator)
        self.optimiser = torch.optim.Adam(
            self.weights.values(), lr=learning_rate, betas=(0.5, 0.999), fused=True
        )
        blank = np.zeros((1, *shard.images.shape[1:]), np.uint8)
        images = np.concatenate([shard.images, blank])
        self.images = torch.tensor(images, device=device).permute(0, 3, 1, 2)
        self.labels = torch.tensor(np.append(shard.labels, 0), device=device)
        sizes, table = _rows_by_teacher(owner, count)
        self.sizes = sizes.to(device)
        self.table = table.to(device)

    def real_batch(self, batch: int) -> stacked.Batch:
        """Draws a batch per teacher from its own records, with replacement.

        Returns:
            Images [N, B, C, H, W] in [0, 1] and labels [N, B].
        """
        draws = torch.rand(
            self.count, batch, generator=self.generator, device=self.generator.device
        )
        position = (draws * self.sizes[:, None]).long().clamp(max=self.table.shape[1] - 1)
        rows = self.table.gather(1, position)
        return self.images[rows] / 255.0, self.labels[rows]

    def train_step(self, fakes: torch.Tensor, fake_labels: torch.Tensor) -> None:
        """Takes one Adam step of every teacher, on its own real batch and the shared fakes.

        A teacher without records learns from the fakes alone, and votes like the rest.

        Args:
            fakes: Images [B, C, H, W].
            fake_labels: int64 [B].
        """
        batch = len(fakes)
        images, labels = self.real_batch(batch)
        parts = [(images, labels), stacked.shared(fakes, fake_labels, self.count)]
        if self.wrong_labels:
            parts.append((images, self._other(labels)))
        logits = stacked.logits(self.teacher, self.weights, *parts)
        real = logits[:, :batch]
        fake = logits[:, batch : 2 * batch]
        losses = _bce(real, 1.0) * (self.sizes > 0) + _bce(fake, 0.0)
        if self.wrong_labels:
            wrong = logits[:, 2 * batch :]
            losses = losses + _bce(wrong, 0.0) * (self.sizes > 0)
        losses.sum().backward()
        self.optimiser.step()
        # or every block would keep its last gradient
        self.optimiser.zero_grad(set_to_none=True)

    def _other(self, labels: torch.Tensor) -> torch.Tensor:
        """Returns for each label another one, drawn uniformly."""
        classes = self.teacher.classes
        offsets = torch.randint(
            1, classes, labels.shape, generator=self.generator, device=self.generator.device
        )
        return (labels + offsets) % classes

    def image_gradients(self, fakes: torch.Tensor, fake_labels: torch.Tensor) -> torch.Tensor:
        """Returns, for each teacher, the direction in which each fake would look more real to it.

        Args:
            fakes: Images [B, C, H, W].
            fake_labels: int64 [B].

        Returns:
            Directions [N, B, d].
        """
        frozen = {name: tensor.detach() for name, tensor in self.weights.items()}
        images, labels = stacked.shared(fakes.detach(), fake_labels, self.count)
        images.requires_grad_()
        losses = _bce(stacked.logits(self.teacher, frozen, (images, labels)), 1.0)
        (gradient,) = torch.autograd.grad(losses.sum(), images)
        return -gradient.flatten(2)

    def poll(
        self, fakes: torch.Tensor, labels: torch.Tensor, training: int, ballot: Ballot
    ) -> np.ndarray:
        """Returns this block's part of a step's vote sums.

        Args:
            fakes: Images [B, C, H, W].
            labels: int64 [B].
            training: Training steps on the fakes before the vote.
            ballot: How image gradients become a vote.

        Returns:
            int64 [B, d].
        """
        for _ in range(training):
            self.train_step(fakes, labels)
        gradients = self.image_gradients(fakes, labels)
        return votes.tally(ballot(gradients, generator=self.generator))

    def state(self) -> State:
        """Returns all that the next step depends on but the records."""
        return packed(self.weights, self.optimiser, self.generator)

    def restore(self, state: State) -> None:
        """Puts back what `state` returned, in place."""
        unpacked(state, self.weights, self.optimiser, self.generator)


def _bce(logits: torch.Tensor, target: float) -> torch.Tensor:
    """Returns the mean binary cross-entropy over each teacher's batch, [N]."""
    targets = torch.full_like(logits, target)
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(1)


def _rows_by_teacher(owner: np.ndarray, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the sizes [N] and the rows [N, largest] of each teacher's records.

    Rows are padded with the blank image after the last record, so that a teacher without records
    touches nobody's.
    """
    sizes = np.bincount(owner, minlength=count)
    table = np.full((count, max(1, sizes.max(initial=0))), len(owner), np.int64)
    for teacher in np.unique(owner):
        rows = np.flatnonzero(owner == teacher)
        table[teacher, : len(rows)] = rows
    return torch.from_numpy(sizes), torch.from_numpy(table)
