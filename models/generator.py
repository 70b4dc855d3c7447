"""Conditional image generators: latent and label in, pixels in [0, 1] out.

Where there is batch norm, its batches hold fakes alone: functions of seeds and of what was released, so that no record
meets another in it.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Generator(nn.Module):
    """What generators share: shapes and the draw of their inputs."""

    name: str

    def __init__(self, *, shape: tuple[int, int, int], classes: int, latent: int, hidden: int):
        super().__init__()
        height, width, channels = shape
        self.out = (channels, height, width)
        self.classes, self.latent, self.hidden = classes, latent, hidden

    def draw(self, count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """(z uniform(-1, 1) [count, latent], labels uniform over the declared classes [count])."""
        z = torch.rand(count, self.latent, generator=generator) * 2 - 1
        return z, torch.randint(self.classes, (count,), generator=generator)

    def onehot(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.one_hot(labels, self.classes).to(z.dtype)


class MlpGenerator(Generator):
    """[z ; one-hot label] -> two hidden layers -> sigmoid pixels [B, C, H, W]."""

    name = "mlp"

    def __init__(
        self, *, shape: tuple[int, int, int], classes: int, latent: int, hidden: int = 128
    ):
        super().__init__(shape=shape, classes=classes, latent=latent, hidden=hidden)
        self.layers = nn.Sequential(
            nn.Linear(latent + classes, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, math.prod(shape)),
        )

    def forward(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        inputs = torch.cat([z, self.onehot(z, labels)], dim=1)
        return torch.sigmoid(self.layers(inputs)).unflatten(1, self.out)


class PaperGenerator(Generator):
    """DataLens' own, as in its code: two dense layers and two transposed convolutions, the label beside the input of
    each; 7.0 million parameters on 28x28x1 with 10 classes and a latent of 50. Where it has batch norm, whose images
    depend on the rest of their batch, this has a norm per image of as many parameters. `hidden` is not used."""

    name = "paper"

    def __init__(
        self, *, shape: tuple[int, int, int], classes: int, latent: int, hidden: int = 128
    ):
        super().__init__(shape=shape, classes=classes, latent=latent, hidden=hidden)
        height, width, channels = shape
        self.small = (128, -(-height // 4), -(-width // 4))
        pixels = math.prod(self.small)
        self.dense = nn.ModuleList(
            [nn.Linear(latent + classes, 1024), nn.Linear(1024 + classes, pixels)]
        )
        self.deconv = nn.ModuleList(
            [_doubling(128 + classes, 128), _doubling(128 + classes, channels)]
        )
        self.norms = nn.ModuleList([nn.LayerNorm(1024), nn.LayerNorm(pixels), nn.GroupNorm(1, 128)])

    def forward(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        _, height, width = self.out
        onehot = self.onehot(z, labels)
        x = F.relu(self.norms[0](self.dense[0](torch.cat([z, onehot], 1))))
        x = F.relu(self.norms[1](self.dense[1](torch.cat([x, onehot], 1)))).unflatten(1, self.small)
        x = F.relu(self.norms[2](self.deconv[0](_with_planes(x, onehot))))
        return torch.sigmoid(self.deconv[1](_with_planes(x, onehot)))[:, :, :height, :width]


def _doubling(channels: int, out: int) -> nn.ConvTranspose2d:
    """5x5, stride 2: both sides doubled."""
    return nn.ConvTranspose2d(channels, out, 5, stride=2, padding=2, output_padding=1)


def _with_planes(x: torch.Tensor, onehot: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, onehot[:, :, None, None].expand(-1, -1, *x.shape[2:])], 1)


class ConvGenerator(Generator):
    """[z ; one-hot label] -> 256 units -> 32 maps of a quarter of the sides -> twice up and convolved, with batch norm.

    The norm is that of the batch at hand, in training and in sampling alike, and keeps no running statistics: an image
    depends on the others made with it. Smooth upsampling leaves no grid of squares, as a transposed convolution
    does. `hidden` is not used.
    """

    name = "conv"
    UNITS, MAPS = 256, (32, 16)

    def __init__(
        self, *, shape: tuple[int, int, int], classes: int, latent: int, hidden: int = 128
    ):
        super().__init__(shape=shape, classes=classes, latent=latent, hidden=hidden)
        height, width, channels = shape
        first, second = self.MAPS
        small, half = (first, -(-height // 4), -(-width // 4)), (-(-height // 2), -(-width // 2))
        self.layers = nn.Sequential(
            *(
                nn.Linear(latent + classes, self.UNITS),
                _norm(nn.BatchNorm1d, self.UNITS),
                nn.ReLU(),
            ),
            *(
                nn.Linear(self.UNITS, math.prod(small)),
                _norm(nn.BatchNorm1d, math.prod(small)),
                nn.ReLU(),
            ),
            *(
                nn.Unflatten(1, small),
                nn.Upsample(half, mode="bilinear"),
                nn.Conv2d(first, second, 5, padding=2),
            ),
            *(_norm(nn.BatchNorm2d, second), nn.ReLU()),
            *(
                nn.Upsample((height, width), mode="bilinear"),
                nn.Conv2d(second, channels, 5, padding=2),
                nn.Sigmoid(),
            ),
        )

    def forward(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return self.layers(torch.cat([z, self.onehot(z, labels)], 1))


def _norm(kind: type[nn.Module], features: int) -> nn.Module:
    return kind(features, track_running_stats=False)


class NormedGenerator(nn.Module):
    """DP-MERF's generator, with batch norm.

    `mlp`: two hidden layers of 200. `cnn`: 200, then 16 maps of a quarter of the sides, twice up and convolved.
    """

    LATENT, HIDDEN, MAPS = 5, 200, 16

    def __init__(self, *, shape: tuple[int, int, int], classes: int, network: str):
        super().__init__()
        height, width, channels = shape
        self.classes = classes
        inputs, small = (
            self.LATENT + classes,
            (self.MAPS, math.ceil(height / 4), math.ceil(width / 4)),
        )
        inner = self.HIDDEN if network == "mlp" else math.prod(small)
        layers = [nn.Linear(inputs, self.HIDDEN), nn.BatchNorm1d(self.HIDDEN), nn.ReLU()]
        layers += [nn.Linear(self.HIDDEN, inner), nn.BatchNorm1d(inner), nn.ReLU()]
        if network == "mlp":
            layers += [
                nn.Linear(inner, math.prod(shape)),
                nn.Unflatten(1, (channels, height, width)),
            ]
        else:
            up, half = {"mode": "bilinear"}, (math.ceil(height / 2), math.ceil(width / 2))
            layers += [
                nn.Unflatten(1, small),
                nn.Upsample(half, **up),
                nn.Conv2d(self.MAPS, 8, 5, padding=2),
            ]
            layers += [
                nn.ReLU(),
                nn.Upsample((height, width), **up),
                nn.Conv2d(8, channels, 5, padding=2),
            ]
        self.layers = nn.Sequential(*layers, nn.Sigmoid())

    def forward(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return self.layers(torch.cat([z, F.one_hot(labels, self.classes).to(z.dtype)], dim=1))


GENERATORS = {network.name: network for network in (MlpGenerator, PaperGenerator, ConvGenerator)}
