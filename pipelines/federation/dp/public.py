"""The server's public images, and a server that validates its model on them.

The images are no client's, and are declared unprotected. What is computed from them and from released
weights is post-processing.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import loss_and_accuracy
from pipelines.federation.core.messages import ServerState
from pipelines.privacy.per_sample import Lot, scaled_sum
from pipelines.training.tensors import AT_ONCE, State, tensors, with_state


@dataclass(frozen=True)
class Public:
    """Holds public images.

    Attributes:
        model: any of the right shape; its weights are replaced.
        images: the public images and their labels.
    """

    model: nn.Module
    images: Images

    def validate(self, weights: State, most: int | None = None) -> tuple[float, float]:
        """Returns the mean cross-entropy and the accuracy of a model.

        Args:
            weights: the model's.
            most: of the images to look at, the same each time and evenly from all in their order;
                None: all.
        """
        count = min(most or len(self.images), len(self.images))
        rows = np.arange(count) * len(self.images) // count
        return loss_and_accuracy(with_state(self.model, weights), self.images[rows])

    def gradient_norm(self, weights: State, quantile: float) -> float:
        """Returns the quantile of the L2 norms of each image's gradient."""
        pixels, labels = tensors(self.images, next(self.model.parameters()).device)
        scaled = scaled_sum(with_state(self.model, weights), Lot(pixels, labels, torch.zeros_like))
        return scaled.norms.quantile(quantile).item()

    def probe(self, states: list[State]) -> tuple[list[np.ndarray], list[float], list[np.ndarray]]:
        """Returns the flat weights, losses and flat gradients of the loss, of each model."""
        pixels, labels = tensors(self.images, next(self.model.parameters()).device)
        weights = []
        losses = []
        gradients = []
        for state in states:
            model = with_state(self.model, state)
            loss, gradient = _loss_and_gradient(model, pixels, labels)
            weights.append(np.concatenate([array.ravel() for array in state.values()]))
            losses.append(loss)
            gradients.append(gradient)
        return weights, losses, gradients


def _loss_and_gradient(
    model: nn.Module, pixels: torch.Tensor, labels: torch.Tensor
) -> tuple[float, np.ndarray]:
    """Returns the mean cross-entropy on all images, and its flat gradient, computed in parts."""
    loss = 0.0
    slope = 0.0
    for part, classes in zip(pixels.split(AT_ONCE), labels.split(AT_ONCE)):
        share = F.cross_entropy(model(part), classes, reduction="sum") / len(labels)
        gradients = torch.autograd.grad(share, list(model.parameters()))
        loss += share.item()
        slope = slope + torch.cat([gradient.flatten() for gradient in gradients])
    return loss, slope.cpu().numpy()


@dataclass(frozen=True)
class ValidatedServer(ServerState):
    """Holds the global model, and what public images say of it.

    Attributes:
        public: the images, or None.
        scored: how many of them each round's model is scored on, at most; None: all.
        losses: one a round, the newest last.
        accuracy: of the last round's model.
    """

    public: Public | None = None
    scored: int | None = None
    losses: tuple[float, ...] = ()
    accuracy: float | None = None

    @property
    def metrics(self) -> dict[str, float]:
        """Returns the loss and accuracy of the last round's model on public images."""
        if not self.losses:
            return {}
        return {"public_loss": self.losses[-1], "public_accuracy": self.accuracy}

    def validated(self, weights: State) -> "ValidatedServer":
        """Returns the state after the model with these weights was scored, where there are images."""
        if not self.public:
            return self
        loss, accuracy = self.public.validate(weights, self.scored)
        return replace(self, losses=(*self.losses, loss), accuracy=accuracy)
