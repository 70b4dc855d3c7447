"""A client's side of a round: the records it trains on, and local SGD, which most algorithms share."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn

from pipelines import seeds
from pipelines.config.data import Augmentation
from pipelines.config.training import LocalSgd
from pipelines.datasets.labelled_images import Images
from pipelines.federation.core.messages import COUNT, LOSS, ClientState
from pipelines.training.augmentation import warp
from pipelines.training.classifier import batches
from pipelines.training.fixed_features import without_fixed_part
from pipelines.training.tensors import State, tensors, with_state


@dataclass(frozen=True)
class Local(ClientState):
    """Holds the records that a client trains on, beside its model on the model's device.

    Attributes:
        model: the client's network, or the part of it that is trained.
        images: float32 [n, C, H, W], or what enters that part.
        labels: int64 [n].
        augmentation: how images are warped in every batch, or None.
        seed: of the client's own random numbers.
    """

    model: nn.Module
    images: torch.Tensor
    labels: torch.Tensor
    augmentation: Augmentation | None
    seed: int

    def __len__(self) -> int:
        return len(self.labels)

    def stream(self, number: int) -> torch.Generator:
        """Returns the random numbers of round `number`; no round's depend on another's."""
        return torch.Generator().manual_seed(seeds.derive(self.seed, number))

    def batch(
        self, rows: torch.Tensor, stream: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the images, warped anew, and the labels of `rows`, int64 [b]."""
        images = self.images[rows]
        if self.augmentation:
            images = warp(images, self.augmentation, stream)
        return images, self.labels[rows]

    def subset(self, rows: torch.Tensor) -> "Local":
        """Returns the same client with the records of `rows` alone."""
        return replace(self, images=self.images[rows], labels=self.labels[rows])


def hold(model: nn.Module, data: Images, augmentation: Augmentation | None, seed: int) -> Local:
    """Returns the records as tensors, made once for all rounds.

    Where images are not warped, a network's fixed features are computed once, too.

    Args:
        model: the client's network, whose device the tensors go to.
        data: uint8 images [n, H, W, C] and their labels.
        augmentation: the warps of every batch, or None.
        seed: of the client's own random numbers.
    """
    images, labels = tensors(data, next(model.parameters()).device)
    if not augmentation:
        model, images = without_fixed_part(model, images)
    return Local(model, images, labels, augmentation, seed)


def sgd(
    local: Local,
    weights: State,
    settings: LocalSgd,
    number: int,
    correct: Callable[[list[nn.Parameter]], None] | None = None,
) -> dict[str, float]:
    """Runs `local_epochs` of SGD. The model then holds the weights that were reached.

    Args:
        local: the client's records and model.
        weights: where the steps begin.
        settings: epochs, batch, learning rate and momentum.
        number: the round, which decides the batches.
        correct: changes the gradients in place before each step.

    Returns:
        {"images", "steps", "train_loss": mean over the steps}.
    """
    model = with_state(local.model, weights)
    parameters = list(model.parameters())
    optimiser = torch.optim.SGD(parameters, lr=settings.learning_rate, momentum=settings.momentum)
    stream = local.stream(number)
    losses = []
    for _ in range(settings.local_epochs):
        for rows in batches(len(local), settings.batch, stream):
            images, labels = local.batch(rows, stream)
            loss = F.cross_entropy(model(images), labels)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            if correct:
                correct(parameters)
            optimiser.step()
            losses.append(loss.detach())
    mean_loss = torch.stack(losses).mean().item()
    return {"images": len(local), "steps": len(losses), "train_loss": mean_loss}


def _step_limits(settings: LocalSgd, sizes: tuple[int, int]) -> tuple[int, int]:
    """Returns the fewest and the most steps of a round."""
    fewest, most = (math.ceil(images / settings.batch) for images in sizes)
    return settings.local_epochs * fewest, settings.local_epochs * most


# FedAvg weighs a client by its images and FedNova divides by its steps: the server knows both
TELLS = {
    "images": replace(COUNT, limits=lambda settings, sizes: sizes),
    "steps": replace(COUNT, limits=_step_limits),
    "train_loss": LOSS,
}
