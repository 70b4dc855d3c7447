"""Conditional image generators: latent and label in, pixels in [0, 1] out."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class MlpGenerator(nn.Module):
    """[z ; one-hot label] -> two hidden layers -> sigmoid pixels [B, C, H, W]. No batch statistics."""

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


class NormedGenerator(nn.Module):
    """DP-MERF's generator, with batch norm: its batches hold fakes alone, so that no record meets another in it.

    `mlp`: two hidden layers of 200. `cnn`: 200, then 16 maps of a quarter of the sides, twice up and convolved.
    """

    LATENT, HIDDEN, MAPS = 5, 200, 16

    def __init__(self, *, shape: tuple[int, int, int], classes: int, network: str):
        super().__init__()
        height, width, channels = shape
        self.classes = classes
        inputs, small = self.LATENT + classes, (self.MAPS, math.ceil(height / 4), math.ceil(width / 4))
        inner = self.HIDDEN if network == "mlp" else math.prod(small)
        layers = [nn.Linear(inputs, self.HIDDEN), nn.BatchNorm1d(self.HIDDEN), nn.ReLU()]
        layers += [nn.Linear(self.HIDDEN, inner), nn.BatchNorm1d(inner), nn.ReLU()]
        if network == "mlp":
            layers += [nn.Linear(inner, math.prod(shape)), nn.Unflatten(1, (channels, height, width))]
        else:
            up, half = {"mode": "bilinear"}, (math.ceil(height / 2), math.ceil(width / 2))
            layers += [nn.Unflatten(1, small), nn.Upsample(half, **up), nn.Conv2d(self.MAPS, 8, 5, padding=2)]
            layers += [nn.ReLU(), nn.Upsample((height, width), **up), nn.Conv2d(8, channels, 5, padding=2)]
        self.layers = nn.Sequential(*layers, nn.Sigmoid())

    def forward(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return self.layers(torch.cat([z, F.one_hot(labels, self.classes).to(z.dtype)], dim=1))
