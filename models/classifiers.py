"""Builds classifiers without batch norm: nothing in them couples one client's records to another's.

>>> model = build("cnn", shape=(28, 28, 1), classes=10, seed=0)
>>> model(torch.zeros(2, 1, 28, 28)).shape
torch.Size([2, 10])
"""

from functools import partial
from itertools import pairwise

import torch
from torch import nn

from models import fixed_features, scattering_features
from models.fixed_features import FixedFeatures

# of channels in each normalisation (Wu and He 2018)
GROUPS = 32


def build(
    name: str,
    *,
    shape: tuple[int, int, int],
    classes: int,
    seed: int,
    activation: str = "relu",
    features: FixedFeatures | None = None,
) -> nn.Module:
    """Builds a classifier of float images [B, C, H, W], initialised from the seed alone.

    * `mlp`: one hidden layer of 64.
    * `cnn`: the PPPFL paper's MNIST network (two 5x5 convolutions, 32 and 64 channels).
    * `resnet`: torchvision's ResNet-18 with a 3x3 stem and no pooling before the stages, as images
      of 32x32 need, and group norm for the batch norm of the paper's.
    * `papernot`, `fedavg_cnn` and `abadi` are of the papers on DP-SGD: Adap DP-FL's (Papernot et
      al. 2021), ALI-DPFL's (McMahan et al. 2017) and DPFL-AGN's (Abadi et al. 2016, on 24x24 pixels
      cut from the middle of larger colour images).
    * `scatter`: fixed scattering features on a public basis, then one linear layer. Only that layer
      is trained, and it begins at 0 whatever the seed (`fixed_features`).
    * `encoder`: the same on the features of a frozen network with public weights (`encoders`).

    Args:
        name: One of these names.
        shape: (height, width, channels) of an image.
        classes: The number of classes.
        seed: The seed of the initial weights.
        activation: "relu", or "tanh", which is Papernot's. ResNet has ReLUs whatever it says, and
            `scatter` and `encoder` have none.
        features: The fixed features of `scatter` or `encoder`. None makes those of `scatter`, which
            takes seconds.

    Returns:
        A module that takes [B, C, H, W] and returns logits [B, classes].
    """
    if name in ("scatter", "encoder"):
        return fixed_features.head(features or scattering_features.made(shape), classes)
    height, width, channels = shape
    act = {"relu": nn.ReLU, "tanh": nn.Tanh}[activation]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "resnet":
            return _resnet(channels, classes)
        front = [FRONTS[name](channels, act)] if name in FRONTS else []
        if name == "abadi" and max(height, width) > 28:
            front = [nn.ZeroPad2d((*_cut(width), *_cut(height))), *front]
        flat = nn.Sequential(*front)(torch.zeros(1, channels, height, width)).numel()
        widths = [flat, *HIDDEN[name]]
        dense = []
        for inputs, outputs in pairwise(widths):
            dense += [nn.Linear(inputs, outputs), act()]
        return nn.Sequential(*front, nn.Flatten(), *dense, nn.Linear(widths[-1], classes))


def _cut(side: int) -> tuple[int, int]:
    """Returns the padding at both ends, negative: 24 of more than 28 pixels are left."""
    surplus = side - 24 if side > 28 else 0
    return -(surplus // 2), -(surplus - surplus // 2)


def _two_convolutions(
    channels: int, act: type[nn.Module], first: int = 32, padding: int = 0
) -> nn.Sequential:
    conv1 = nn.Conv2d(channels, first, 5, padding=padding)
    conv2 = nn.Conv2d(first, 64, 5, padding=padding)
    return nn.Sequential(conv1, nn.MaxPool2d(2), act(), conv2, nn.MaxPool2d(2), act())


def _papernot(channels: int, act: type[nn.Module]) -> nn.Sequential:
    conv1 = nn.Conv2d(channels, 16, 8, stride=2, padding=2)
    conv2 = nn.Conv2d(16, 32, 4, stride=2)
    return nn.Sequential(conv1, nn.MaxPool2d(2, 1), act(), conv2, nn.MaxPool2d(2, 1), act())


FRONTS = {
    "cnn": _two_convolutions,
    "papernot": _papernot,
    "fedavg_cnn": _two_convolutions,
    "abadi": partial(_two_convolutions, first=64, padding=2),
}
HIDDEN = {"mlp": [64], "cnn": [], "papernot": [32], "fedavg_cnn": [512], "abadi": [384, 384]}


def _resnet(channels: int, classes: int) -> nn.Module:
    # takes seconds to import, and is only needed here
    from torchvision.models import resnet18

    model = resnet18(num_classes=classes, norm_layer=lambda width: nn.GroupNorm(GROUPS, width))
    model.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model
