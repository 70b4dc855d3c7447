"""A client's side of a round: the records it trains on, and local SGD, which most algorithms share."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn

from pipelines import seeds
from pipelines.config.data import Augmentation
from pipelines.config.training import LocalSgd
from pipelines.datasets.labelled_images import Images
from pipelines.training.augmentation import warp
from pipelines.training.classifier import batches
from pipelines.training.tensors import State, tensors, with_state


@dataclass(frozen=True)
class Local:
    """images: float32 [n, C, H, W], labels: int64 [n], beside the model on its device. seed: the client's own."""

    model: nn.Module
    images: torch.Tensor
    labels: torch.Tensor
    augmentation: Augmentation | None
    seed: int

    def __len__(self) -> int:
        return len(self.labels)

    def stream(self, number: int) -> torch.Generator:
        """The random numbers of round `number`: no round's depend on another's."""
        return torch.Generator().manual_seed(seeds.derive(self.seed, number))

    def batch(
        self, rows: torch.Tensor, stream: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        images = self.images[rows]
        return (
            warp(images, self.augmentation, stream) if self.augmentation else images
        ), self.labels[rows]

    def subset(self, rows: torch.Tensor) -> "Local":
        return replace(self, images=self.images[rows], labels=self.labels[rows])


def hold(model: nn.Module, data: Images, augmentation: Augmentation | None, seed: int) -> Local:
    """The records as tensors, once for all rounds."""
    return Local(model, *tensors(data, next(model.parameters()).device), augmentation, seed)


def sgd(
    local: Local,
    weights: State,
    settings: LocalSgd,
    number: int,
    correct: Callable[[list[nn.Parameter]], None] | None = None,
) -> dict[str, float]:
    """`local_epochs` of SGD from `weights` in round `number`; `correct` changes the gradients before each step.

    Returns {"images", "steps", "train_loss": mean over the steps}; the weights reached are the model's.
    """
    model = with_state(local.model, weights)
    parameters = list(model.parameters())
    optimiser = torch.optim.SGD(parameters, lr=settings.learning_rate, momentum=settings.momentum)
    stream, losses = local.stream(number), []
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
    return {
        "images": len(local),
        "steps": len(losses),
        "train_loss": torch.stack(losses).mean().item(),
    }
