"""N teacher discriminators on disjoint records, trained side by side as stacked tensors.

Adam is elementwise, so one optimiser over tensors [N, ...] is N optimisers with states of their own: no teacher's
update reads another's gradient. Batches are drawn with a stream that does not depend on the data; removing a record
changes what its own teacher draws and nothing else.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from models import teachers
from pipelines.datasets.containers import Images
from pipelines.training.tensors import tensors


class Ensemble:
    """Teachers and their shards.

    Args:
        teacher: the network that is stacked.
        owner: int64 [n], the teacher of each record (votes.assign).
    """

    def __init__(
        self, teacher: nn.Module, shard: Images, owner: np.ndarray, *, count: int, learning_rate: float, seed: int
    ):
        self.teacher, self.count = teacher, count
        self.generator = torch.Generator().manual_seed(seed)
        self.weights = teachers.stack(teacher, count, self.generator)
        self.optimiser = torch.optim.Adam(self.weights.values(), lr=learning_rate, betas=(0.5, 0.999))
        images, labels = tensors(shard)
        blank = torch.zeros(1, *images.shape[1:])
        self.images, self.labels = torch.cat([images, blank]), torch.cat([labels, labels.new_zeros(1)])
        self.sizes, self.table = _rows_by_teacher(owner, count)

    def real_batch(self, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
        """([N, B, C, H, W], [N, B]): each teacher draws from its own records with replacement."""
        draws = torch.rand(self.count, batch, generator=self.generator)
        position = (draws * self.sizes[:, None]).long().clamp(max=self.table.shape[1] - 1)
        rows = self.table.gather(1, position)
        return self.images[rows], self.labels[rows]

    def train_step(self, fakes: torch.Tensor, fake_labels: torch.Tensor) -> None:
        """One Adam step of every teacher on its own real batch and the shared fakes [B, C, H, W]. A teacher without
        records learns from the fakes alone, and votes like the rest."""
        images, labels = self.real_batch(len(fakes))
        real = teachers.logits(self.teacher, self.weights, images, labels)
        fake = teachers.logits(self.teacher, self.weights, *self._shared(fakes, fake_labels))
        losses = _bce(real, 1.0) * (self.sizes > 0) + _bce(fake, 0.0)
        self.optimiser.zero_grad(set_to_none=True)
        losses.sum().backward()
        self.optimiser.step()

    def image_gradients(self, fakes: torch.Tensor, fake_labels: torch.Tensor) -> torch.Tensor:
        """[N, B, d]: for each teacher, the direction in which each fake would look more real to it."""
        images, labels = self._shared(fakes.detach(), fake_labels)
        images = images.clone().requires_grad_()
        losses = _bce(teachers.logits(self.teacher, self.weights, images, labels), 1.0)
        (gradient,) = torch.autograd.grad(losses.sum(), images)
        return -gradient.flatten(2)

    def _shared(self, fakes: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return fakes.expand(self.count, *fakes.shape), labels.expand(self.count, *labels.shape)


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
