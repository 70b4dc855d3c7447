"""Defines fixed features of frozen networks that were trained on public images.

An image is enlarged and enters the network. The network's last maps are averaged over their places.
Their signed roots are normalised within the image, so that all features have the same norm. No
image sees another.

>>> network = architecture("resnet18")
>>> features = EncoderFeatures(network, "resnet18", side=32)
>>> features(torch.zeros(2, 1, 8, 8)).shape
torch.Size([2, 512])
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from models.fixed_features import FixedFeatures, without_parameters

# of a feature vector, about: 1 was level with it (benchmarks/head_schedules.py)
NORM = 2.0
# raised when the same weights would give other features
VERSION = 1
# {network: the name of its last layer, before which its features lie}
LAST_LAYERS = {
    "efficientnet_lite0": "_fc",
    "resnet18": "fc",
    "resnet50": "fc",
    "densenet121": "classifier",
    "efficientnet_b0": "classifier.1",
    "convnext_tiny": "classifier.2",
}
# grey levels 0 to 255 of each colour: what the networks were trained on has mean 0 and deviation 1
LITE = ((127.0, 127.0, 127.0), (128.0, 128.0, 128.0))
TORCHVISION = ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375))


def architecture(name: str) -> nn.Module:
    """Returns a network of LAST_LAYERS with random weights.

    Args:
        name: Its name, torchvision's but for `efficientnet_lite0`.

    Raises:
        ModuleNotFoundError: The package of `efficientnet_lite0` is not installed.
    """
    # both take a second to import, and are needed here alone
    with torch.random.fork_rng(devices=[]):
        if name == "efficientnet_lite0":
            from efficientnet_lite_pytorch import EfficientNet

            return EfficientNet.from_name("efficientnet-lite0")
        from torchvision.models import get_model

        return get_model(name, weights=None)


class EncoderFeatures(FixedFeatures):
    """Maps float images [B, 1 or 3, H, W] in [0, 1] to features [B, count] of norm about NORM.

    Args:
        network: A network of `architecture` with its weights. It is frozen, and loses its last
            layer.
        name: Its name.
        side: Pixels to which both sides of an image are brought.
    """

    def __init__(self, network: nn.Module, name: str, side: int):
        parent, _, last = LAST_LAYERS[name].rpartition(".")
        owner = network.get_submodule(parent)
        super().__init__(owner.get_submodule(last).in_features)
        setattr(owner, last, nn.Identity())
        self.network = without_parameters(network)
        self.side = side
        means, deviations = LITE if name == "efficientnet_lite0" else TORCHVISION
        self.register_buffer("means", _by_colour(means), persistent=False)
        self.register_buffer("deviations", _by_colour(deviations), persistent=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Returns the features [B, count] of float images [B, 1 or 3, H, W] in [0, 1]."""
        sides = (self.side, self.side)
        enlarged = F.interpolate(images * 255, sides, mode="bicubic", align_corners=False)
        colours = enlarged.expand(-1, 3, -1, -1)
        entering = (colours - self.means) / self.deviations
        maps = self.network(entering.contiguous(memory_format=torch.channels_last))
        return normalised(maps)


def normalised(averages: torch.Tensor) -> torch.Tensor:
    """Returns features [B, d] of norm about NORM: signed roots, of mean 0 and one variance.

    Args:
        averages: [B, d], of the network's last maps over their places.
    """
    roots = averages.sign() * averages.abs().sqrt()
    return F.layer_norm(roots, roots.shape[1:]) * (NORM / math.sqrt(roots.shape[1]))


def _by_colour(values: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(values)[:, None, None]
