"""Classifiers without batch norm: nothing in them couples one client's records to another's."""

import torch
from torch import nn

GROUPS = 32  # of channels in each normalisation (Wu and He 2018)


def build(name: str, *, shape: tuple[int, int, int], classes: int, seed: int) -> nn.Module:
    """A classifier of float images [B, C, H, W], initialised from `seed` alone.

    `mlp`: one hidden layer of 64. `cnn`: the PPPFL paper's MNIST network (two 5x5 convolutions, 32 and 64 channels).
    `resnet`: torchvision's ResNet-18 with a 3x3 stem and no pooling before the stages, as images of 32x32 need, and
    group norm for the batch norm of the paper's.
    """
    height, width, channels = shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "mlp":
            return nn.Sequential(
                nn.Flatten(), nn.Linear(height * width * channels, 64), nn.ReLU(), nn.Linear(64, classes)
            )
        if name == "resnet":
            return _resnet(channels, classes)
        features = nn.Sequential(
            nn.Conv2d(channels, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2)
        )
        flat = features(torch.zeros(1, channels, height, width)).numel()
        return nn.Sequential(features, nn.Flatten(), nn.Linear(flat, classes))


def _resnet(channels: int, classes: int) -> nn.Module:
    from torchvision.models import resnet18  # seconds to import, and only needed here

    model = resnet18(num_classes=classes, norm_layer=lambda width: nn.GroupNorm(GROUPS, width))
    model.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model
