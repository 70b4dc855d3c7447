"""A block: some teachers and their records, trained and asked together as stacked tensors [N, ...].

Adam is elementwise, so one optimiser over tensors [N, ...] is N optimisers with states of their own: no teacher's
update reads another's gradient. Batches are drawn with a stream that does not depend on the data; removing a record
changes what its own teacher draws and nothing else.
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

Ballot = Callable[
    ..., torch.Tensor
]  # (image gradients [N, B, d], generator=) -> int8 ballots, same shape


class Block:
    """Teachers 0 to count - 1 and their shards.

    Args:
        teacher: the network that is stacked.
        owner: int64 [n], the teacher of each record of `shard`, in [0, count).
        wrong_labels: whether a teacher must also reject its own records under other labels.
        device: where weights and records lie.
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
        self.teacher, self.count = teacher, count
        self.wrong_labels = wrong_labels and teacher.classes > 1
        self.generator = torch.Generator(device).manual_seed(seed)
        self.weights = stacked.initial(teacher, count, self.generator)
        self.optimiser = torch.optim.Adam(
            self.weights.values(), lr=learning_rate, betas=(0.5, 0.999), fused=True
        )
        blank = np.zeros((1, *shard.images.shape[1:]), np.uint8)
        self.images = torch.tensor(np.concatenate([shard.images, blank]), device=device).permute(
            0, 3, 1, 2
        )
        self.labels = torch.tensor(np.append(shard.labels, 0), device=device)
        self.sizes, self.table = (table.to(device) for table in _rows_by_teacher(owner, count))

    def real_batch(self, batch: int) -> stacked.Batch:
        """([N, B, C, H, W], [N, B]): each teacher draws from its own records with replacement."""
        draws = torch.rand(
            self.count, batch, generator=self.generator, device=self.generator.device
        )
        position = (draws * self.sizes[:, None]).long().clamp(max=self.table.shape[1] - 1)
        rows = self.table.gather(1, position)
        return self.images[rows] / 255.0, self.labels[rows]

    def train_step(self, fakes: torch.Tensor, fake_labels: torch.Tensor) -> None:
        """One Adam step of every teacher on its own real batch and the shared fakes [B, C, H, W]. A teacher without
        records learns from the fakes alone, and votes like the rest."""
        batch = len(fakes)
        images, labels = self.real_batch(batch)
        parts = [(images, labels), stacked.shared(fakes, fake_labels, self.count)]
        if self.wrong_labels:
            parts.append((images, self._other(labels)))
        logits = stacked.logits(self.teacher, self.weights, *parts)
        real, fake, wrong = logits[:, :batch], logits[:, batch : 2 * batch], logits[:, 2 * batch :]
        losses = _bce(real, 1.0) * (self.sizes > 0) + _bce(fake, 0.0)
        if self.wrong_labels:
            losses = losses + _bce(wrong, 0.0) * (self.sizes > 0)
        losses.sum().backward()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)  # or every block would keep its last gradient

    def _other(self, labels: torch.Tensor) -> torch.Tensor:
        """Same shape: for each label another one, uniformly."""
        classes = self.teacher.classes
        offsets = torch.randint(
            1, classes, labels.shape, generator=self.generator, device=self.generator.device
        )
        return (labels + offsets) % classes

    def image_gradients(self, fakes: torch.Tensor, fake_labels: torch.Tensor) -> torch.Tensor:
        """[N, B, d]: for each teacher, the direction in which each fake would look more real to it."""
        frozen = {name: tensor.detach() for name, tensor in self.weights.items()}
        images, labels = stacked.shared(fakes.detach(), fake_labels, self.count)
        images.requires_grad_()
        losses = _bce(stacked.logits(self.teacher, frozen, (images, labels)), 1.0)
        (gradient,) = torch.autograd.grad(losses.sum(), images)
        return -gradient.flatten(2)

    def poll(
        self, fakes: torch.Tensor, labels: torch.Tensor, training: int, ballot: Ballot
    ) -> np.ndarray:
        """int64 [B, d]: this block's part of a step's vote sums, after `training` steps on the fakes."""
        for _ in range(training):
            self.train_step(fakes, labels)
        return votes.tally(ballot(self.image_gradients(fakes, labels), generator=self.generator))

    def state(self) -> State:
        """All that the next step depends on but the records."""
        return packed(self.weights, self.optimiser, self.generator)

    def restore(self, state: State) -> None:
        unpacked(state, self.weights, self.optimiser, self.generator)


def _bce(logits: torch.Tensor, target: float) -> torch.Tensor:
    """[N]: mean binary cross-entropy over each teacher's batch."""
    targets = torch.full_like(logits, target)
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(1)


def _rows_by_teacher(owner: np.ndarray, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(sizes [N], rows [N, largest], padded with the blank image after the last record, so that a teacher without
    records touches nobody's)."""
    sizes = np.bincount(owner, minlength=count)
    table = np.full((count, max(1, sizes.max(initial=0))), len(owner), np.int64)
    for teacher in np.unique(owner):
        rows = np.flatnonzero(owner == teacher)
        table[teacher, : len(rows)] = rows
    return torch.from_numpy(sizes), torch.from_numpy(table)
