"""Builds and trains classifiers: cross-entropy, Adam, early stopping on validation loss."""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

from models import classifiers
from pipelines.config.data import Augmentation, Profile
from pipelines.config.training import Pooled
from pipelines.datasets.labelled_images import Images
from pipelines.training import fixed_features
from pipelines.training.augmentation import warp
from pipelines.training.progress import Steps
from pipelines.training.tensors import logits, tensors


def new(
    profile: Profile, seed: int, device: torch.device | str = "cpu", *, activation: str = "relu"
) -> nn.Module:
    """Returns the data set's classifier, freshly initialised.

    Its channels are last: convolutions take three quarters of the time.

    Args:
        profile: The data set's profile: its `classifier`, shape and number of classes.
        seed: The seed of the initial weights.
        device: Where the weights lie.
        activation: The activation function between layers.

    >>> profile = Profile.model_construct(classifier="mlp", shape=[8, 8, 1], classes=10)
    >>> new(profile, seed=0)(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """
    fixed = fixed_features.of(profile, profile.classifier)
    model = classifiers.build(
        profile.classifier,
        shape=tuple(profile.shape),
        classes=profile.classes,
        seed=seed,
        activation=activation,
        features=fixed_features.module(fixed) if fixed else None,
    )
    return model.to(device, memory_format=torch.channels_last)


def on_synthetic(
    data: Images, profile: Profile, settings: Pooled, seed: int, device: torch.device | str = "cpu"
) -> nn.Module:
    """Returns a classifier trained on synthetic images alone.

    It is trained with the data set's public augmentation. The last iterate is returned, and nothing
    is selected.

    Args:
        data: The synthetic images.
        profile: The data set's profile.
        settings: Steps, batch size and the peak of the learning rate.
        seed: The seed of the initial weights and of the training.
        device: Where the model is trained.
    """
    model = new(profile, seed, device)
    fit_synthetic(model, data, settings, profile.augmentation, seed)
    return model


def fit_synthetic(
    model: nn.Module,
    data: Images,
    settings: Pooled,
    augmentation: Augmentation | None,
    seed: int,
) -> None:
    """Trains a model in place on synthetic images, with their classes as they are.

    Args:
        model: The classifier.
        data: The synthetic images.
        settings: Steps, batch size and the peak of the learning rate.
        augmentation: The data set's public warps, or None.
        seed: The seed of batches and warps.
    """
    fit(
        model,
        data,
        epochs=settings.epochs(len(data)),
        batch=settings.batch,
        learning_rate=settings.learning_rate,
        seed=seed,
        augmentation=augmentation,
        one_cycle=True,
    )


def batches(count: int, size: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Yields shuffled positions in batches, of which the last may be smaller.

    Args:
        count: Positions are 0 to count - 1.
        size: The size of a batch.
        generator: The random stream.

    >>> stream = torch.Generator().manual_seed(0)
    >>> [len(batch) for batch in batches(5, 2, stream)]
    [2, 2, 1]
    """
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
    """Trains a model in place.

    With `validation`, the weights of the epoch with the least validation loss stay (the untrained
    ones, epoch 0, are a candidate), and training stops after `patience` epochs without a better
    one.

    Args:
        model: The classifier.
        data: The training images.
        epochs: The largest number of epochs.
        batch: The number of images per step.
        learning_rate: Adam's learning rate.
        seed: The seed of batches and augmentation.
        validation: The images whose loss selects an epoch, or None.
        patience: Epochs without a better one before training stops; None never stops early.
        augmentation: Public warps of each batch, or None.
        one_cycle: The learning rate is the peak of a rise and fall over all steps (Smith and
            Topin), instead of constant. The last iterate is then a settled one, which matters
            where nothing is selected.

    Returns:
        The number of epochs run.
    """
    generator = torch.Generator().manual_seed(seed)
    on = next(model.parameters()).device
    images, labels = tensors(data, on)
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    schedule = None
    if one_cycle:
        steps = epochs * math.ceil(len(labels) / batch)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, learning_rate, total_steps=steps)
    stopper = None
    if validation is not None and len(validation):
        stopper = _Stopper(model, validation, patience)
    passes = Steps(range(1, epochs + 1), "epochs")
    for epoch in passes:
        model.train()
        for rows in batches(len(labels), batch, generator):
            inputs = warp(images[rows], augmentation, generator) if augmentation else images[rows]
            loss = _step(model, inputs, labels[rows], optimiser)
            if schedule:
                schedule.step()
        passes.tell(loss)
        if stopper and stopper.stops_after(epoch):
            break
    if stopper:
        model.load_state_dict(stopper.best)
    model.eval()
    return epoch


def _step(
    model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, optimiser: torch.optim.Optimizer
) -> torch.Tensor:
    """Takes a step and returns the loss before it."""
    loss = F.cross_entropy(model(inputs), labels)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()
    return loss.detach()


class _Stopper:
    """Holds the weights with the least validation loss, and says when to stop."""

    def __init__(self, model: nn.Module, validation: Images, patience: int | None):
        self.model = model
        self.patience = patience
        self.images, self.labels = tensors(validation, next(model.parameters()).device)
        self.best_loss = self._loss()
        self.best_epoch = 0
        self._keep()

    def stops_after(self, epoch: int) -> bool:
        loss = self._loss()
        if loss < self.best_loss:
            self.best_loss = loss
            self.best_epoch = epoch
            self._keep()
        return self.patience is not None and epoch - self.best_epoch >= self.patience

    def _loss(self) -> float:
        return F.cross_entropy(logits(self.model, self.images), self.labels).item()

    def _keep(self) -> None:
        self.best = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
