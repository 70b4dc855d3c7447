"""The plain training loop: cross-entropy, Adam, early stopping on validation loss."""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

from pipelines.config.data import Augmentation
from pipelines.datasets.labelled_images import Images
from pipelines.training.augmentation import warp
from pipelines.training.tensors import logits, tensors


def batches(count: int, size: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Shuffled positions 0 .. count - 1 in batches; the last may be smaller."""
    yield from torch.randperm(count, generator=generator).split(size)


def fit(
    model: nn.Module,
    data: Images,
    *,
    epochs: int,
    batch: int,
    learning_rate: float,
    seed: int,
    validation: Images | None = None,
    patience: int | None = None,
    augmentation: Augmentation | None = None,
    one_cycle: bool = False,
) -> int:
    """Trains `model` in place and returns the epochs run.

    The learning rate is constant, or with `one_cycle` the peak of a rise and fall over all steps (Smith and Topin): the
    last iterate is then a settled one, which matters where nothing is selected.

    With `validation`, the weights of the epoch with the least validation loss stay (the untrained ones, epoch 0, are a
    candidate), and training stops after `patience` epochs without a better one.
    """
    generator = torch.Generator().manual_seed(seed)
    on = next(model.parameters()).device
    images, labels = tensors(data, on)
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    steps = epochs * math.ceil(len(labels) / batch)
    schedule = (
        torch.optim.lr_scheduler.OneCycleLR(optimiser, learning_rate, total_steps=steps)
        if one_cycle
        else None
    )
    stopper = (
        _Stopper(model, validation, patience)
        if validation is not None and len(validation)
        else None
    )
    for epoch in range(1, epochs + 1):
        model.train()
        for rows in batches(len(labels), batch, generator):
            inputs = warp(images[rows], augmentation, generator) if augmentation else images[rows]
            loss = F.cross_entropy(model(inputs), labels[rows])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            if schedule:
                schedule.step()
        if stopper and stopper.stops_after(epoch):
            break
    if stopper:
        model.load_state_dict(stopper.best)
    model.eval()
    return epoch


class _Stopper:
    def __init__(self, model: nn.Module, validation: Images, patience: int | None):
        self.model, self.patience = model, patience
        self.images, self.labels = tensors(validation, next(model.parameters()).device)
        self.best_loss, self.best_epoch = self._loss(), 0
        self._keep()

    def stops_after(self, epoch: int) -> bool:
        loss = self._loss()
        if loss < self.best_loss:
            self.best_loss, self.best_epoch = loss, epoch
            self._keep()
        return self.patience is not None and epoch - self.best_epoch >= self.patience

    def _loss(self) -> float:
        return F.cross_entropy(logits(self.model, self.images), self.labels).item()

    def _keep(self):
        self.best = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
