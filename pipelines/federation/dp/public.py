"""The server's public images: no client's, declared unprotected. What is computed from them and from released weights
is post-processing."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import loss_and_accuracy
from pipelines.privacy.per_sample import Lot, scaled_sum
from pipelines.training.tensors import AT_ONCE, State, tensors, with_state


@dataclass(frozen=True)
class Public:
    """model: any of the right shape; its weights are replaced."""

    model: nn.Module
    images: Images

    def validate(self, weights: State, most: int | None = None) -> tuple[float, float]:
        """(mean cross-entropy, accuracy), on all images, or on so many at most: the same each time, evenly
        from all in their order."""
        count = min(most or len(self.images), len(self.images))
        some = self.images[np.arange(count) * len(self.images) // count]
        return loss_and_accuracy(with_state(self.model, weights), some)

    def gradient_norm(self, weights: State, quantile: float) -> float:
        """The quantile of the L2 norms of each image's gradient."""
        pixels, labels = tensors(self.images, next(self.model.parameters()).device)
        scaled = scaled_sum(with_state(self.model, weights), Lot(pixels, labels, torch.zeros_like))
        return scaled.norms.quantile(quantile).item()

    def probe(self, states: list[State]) -> tuple[list[np.ndarray], list[float], list[np.ndarray]]:
        """(flat weights, losses, flat gradients of the loss), of each."""
        pixels, labels = tensors(self.images, next(self.model.parameters()).device)
        losses, slopes = [], []
        for state in states:
            model, loss, slope = with_state(self.model, state), 0.0, 0.0
            for part, classes in zip(pixels.split(AT_ONCE), labels.split(AT_ONCE)):
                share = F.cross_entropy(model(part), classes, reduction="sum") / len(labels)
                gradients = torch.autograd.grad(share, list(model.parameters()))
                loss += share.item()
                slope = slope + torch.cat([gradient.flatten() for gradient in gradients])
            losses.append(loss)
            slopes.append(slope.cpu().numpy())
        return (
            [np.concatenate([array.ravel() for array in state.values()]) for state in states],
            losses,
            slopes,
        )
