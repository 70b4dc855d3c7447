"""Defines conditional image generators: latent and label in, pixels in [0, 1] out.

Where there is batch norm, its batches hold fakes alone: functions of seeds and of what was
released, so that no record meets another in it.

>>> network = MlpGenerator(shape=(8, 8, 1), classes=10, latent=4)
>>> z, labels = network.draw(3, torch.Generator().manual_seed(0))
>>> network(z, labels).shape
torch.Size([3, 1, 8, 8])
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Generator(nn.Module):
    """Holds what generators share: shapes and the draw of their inputs.

    Args:
        shape: (height, width, channels) of an image.
        classes: The declared number of classes.
        latent: The number of latent values per image.
        hidden: The width of hidden layers.
    """

    name: str

    def __init__(self, *, shape: tuple[int, int, int], classes: int, latent: int, hidden: int):
        super().__init__()
        height, width, channels = shape
        self.out = (channels, height, width)
        self.classes = classes
        self.latent = latent
        self.hidden = hidden

    def draw(self, count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Draws z, uniform in (-1, 1), [count, latent], and uniform labels [count]."""
        z = torch.rand(count, self.latent, generator=generator) * 2 - 1
        return z, torch.randint(self.classes, (count,), generator=generator)

    def onehot(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Returns labels [B] as one-hot vectors [B, classes] of the type of z."""
        return F.one_hot(labels, self.classes).to(z.dtype)


class MlpGenerator(Generator):
    """Maps [z ; one-hot label] by two hidden layers to sigmoid pixels [B, C, H, W]."""

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
        """Returns images [B, C, H, W] in [0, 1] of latents z [B, latent] and labels [B]."""
        inputs = torch.cat([z, self.onehot(z, labels)], dim=1)
        return torch.sigmoid(self.layers(inputs)).unflatten(1, self.out)


class PaperGenerator(Generator):
    """Is DataLens' own network, as in its code: two dense layers and two transposed convolutions.

    The label stands beside the input of each. It has 7.0 million parameters on 28x28x1 with 10
    classes and a latent of 50. Where theirs has batch norm, whose images depend on the rest of
    their batch, this has a norm per image of as many parameters. `hidden` is not used.
    """

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
        """Returns images [B, C, H, W] in [0, 1] of latents z [B, latent] and labels [B]."""
        _, height, width = self.out
        onehot = self.onehot(z, labels)
        x = F.relu(self.norms[0](self.dense[0](torch.cat([z, onehot], 1))))
        x = F.relu(self.norms[1](self.dense[1](torch.cat([x, onehot], 1)))).unflatten(1, self.small)
        x = F.relu(self.norms[2](self.deconv[0](_with_planes(x, onehot))))
        return torch.sigmoid(self.deconv[1](_with_planes(x, onehot)))[:, :, :height, :width]


def _doubling(channels: int, out: int) -> nn.ConvTranspose2d:
    """Returns a 5x5 convolution of stride 2 that doubles both sides."""
    return nn.ConvTranspose2d(channels, out, 5, stride=2, padding=2, output_padding=1)


def _with_planes(x: torch.Tensor, onehot: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, onehot[:, :, None, None].expand(-1, -1, *x.shape[2:])], 1)


class ConvGenerator(Generator):
    """Maps [z ; one-hot label] to 256 units and 32 small maps, which grow twice, with batch norm.

    The maps have a quarter of the sides, and are twice upsampled and convolved. The norm is that of
    the batch at hand, in training and in sampling alike, and keeps no running statistics: an image
    depends on the others made with it. Smooth upsampling leaves no grid of squares, as a transposed
    convolution does. `hidden` is not used.
    """

    name = "conv"
    UNITS = 256
    MAPS = (32, 16)

    def __init__(
        self, *, shape: tuple[int, int, int], classes: int, latent: int, hidden: int = 128
    ):
        super().__init__(shape=shape, classes=classes, latent=latent, hidden=hidden)
        height, width, channels = shape
        first, second = self.MAPS
        small = (first, -(-height // 4), -(-width // 4))
        half = (-(-height // 2), -(-width // 2))
        self.layers = nn.Sequential(
            nn.Linear(latent + classes, self.UNITS),
            _norm(nn.BatchNorm1d, self.UNITS),
            nn.ReLU(),
            nn.Linear(self.UNITS, math.prod(small)),
            _norm(nn.BatchNorm1d, math.prod(small)),
            nn.ReLU(),
            nn.Unflatten(1, small),
            nn.Upsample(half, mode="bilinear"),
            nn.Conv2d(first, second, 5, padding=2),
            _norm(nn.BatchNorm2d, second),
            nn.ReLU(),
            nn.Upsample((height, width), mode="bilinear"),
            nn.Conv2d(second, channels, 5, padding=2),
            nn.Sigmoid(),
        )

    def forward(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Returns images [B, C, H, W] in [0, 1] of latents z [B, latent] and labels [B]."""
        return self.layers(torch.cat([z, self.onehot(z, labels)], 1))


def _norm(kind: type[nn.Module], features: int) -> nn.Module:
    return kind(features, track_running_stats=False)


class NormedGenerator(nn.Module):
    """Is DP-MERF's generator, with batch norm.

    `mlp` has two hidden layers of 200. `cnn` has one of 200, then 16 maps of a quarter of the
    sides, which are twice upsampled and convolved.

    Args:
        shape: (height, width, channels) of an image.
        classes: The declared number of classes.
        network: "mlp" or "cnn".
    """

    LATENT = 5
    HIDDEN = 200
    MAPS = 16

    def __init__(self, *, shape: tuple[int, int, int], classes: int, network: str):
        super().__init__()
        height, width, channels = shape
        self.classes = classes
        inputs = self.LATENT + classes
        small = (self.MAPS, math.ceil(height / 4), math.ceil(width / 4))
        inner = self.HIDDEN if network == "mlp" else math.prod(small)
        layers = [nn.Linear(inputs, self.HIDDEN), nn.BatchNorm1d(self.HIDDEN), nn.ReLU()]
        layers += [nn.Linear(self.HIDDEN, inner), nn.BatchNorm1d(inner), nn.ReLU()]
        if network == "mlp":
            layers += [
                nn.Linear(inner, math.prod(shape)),
                nn.Unflatten(1, (channels, height, width)),
            ]
        else:
            half = (math.ceil(height / 2), math.ceil(width / 2))
            layers += [
                nn.Unflatten(1, small),
                nn.Upsample(half, mode="bilinear"),
                nn.Conv2d(self.MAPS, 8, 5, padding=2),
                nn.ReLU(),
                nn.Upsample((height, width), mode="bilinear"),
                nn.Conv2d(8, channels, 5, padding=2),
            ]
        self.layers = nn.Sequential(*layers, nn.Sigmoid())

    def forward(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Returns images [B, C, H, W] in [0, 1] of latents z [B, latent] and labels [B]."""
        return self.layers(torch.cat([z, F.one_hot(labels, self.classes).to(z.dtype)], dim=1))


GENERATORS = {network.name: network for network in (MlpGenerator, PaperGenerator, ConvGenerator)}
