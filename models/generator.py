"""Conditional image generator: latent and label in, pixels in [0, 1] out. No batch statistics."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class MlpGenerator(nn.Module):
    """[z ; one-hot label] -> two hidden layers -> sigmoid pixels [B, C, H, W]."""

    def __init__(self, *, shape: tuple[int, int, int], classes: int, latent: int, hidden: int = 128):
        super().__init__()
        height, width, channels = shape
        self.out = (channels, height, width)
        self.classes, self.latent = classes, latent
        self.layers = nn.Sequential(
            nn.Linear(latent + classes, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, math.prod(shape)),
        )

    def forward(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        inputs = torch.cat([z, F.one_hot(labels, self.classes).to(z.dtype)], dim=1)
        return torch.sigmoid(self.layers(inputs)).unflatten(1, self.out)

    def draw(self, count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """(z uniform(-1, 1) [count, latent], labels uniform over the declared classes [count])."""
        z = torch.rand(count, self.latent, generator=generator) * 2 - 1
        return z, torch.randint(self.classes, (count,), generator=generator)
