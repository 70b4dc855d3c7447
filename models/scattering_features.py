"""Defines the `scatter` network: fixed scattering features, then one linear layer that is trained.

The features are functions of one image and of a public basis. Only the linear layer has parameters,
and only they are in a model's state: 501 numbers for each class on images of 28x28.

>>> features = ScatteringFeatures((8, 8, 1), scattering_basis.make((8, 8, 1), images=200))
>>> model = head(features, classes=10)
>>> model(torch.zeros(2, 1, 8, 8)).shape
torch.Size([2, 10])
>>> list(model.state_dict())
['2.weight']
"""

import copy
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from models import scattering_basis
from models.scattering import Scattering, normalised
from models.scattering_basis import Basis

# the constant input whose weights are the biases: features have a mean norm of 1
BIAS = 0.3


class ScatteringFeatures(Scattering):
    """Maps images [B, C, H, W] to features r [B, k]: scattering, group norm, public basis.

    Args:
        shape: (height, width, channels) of an image.
        basis: The public basis for this shape.

    Attributes:
        count: k, the number of features.
    """

    def __init__(self, shape: tuple[int, int, int], basis: Basis):
        super().__init__(*shape[:2])
        projection = basis.directions.astype(np.float64) * basis.weights[:, None]
        self.count = len(projection)
        self._fix("projection", projection, torch.float32)
        self._fix("offset", -projection @ basis.mean, torch.float32)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Returns the features [B, k] of float images [B, C, H, W] in [0, 1]."""
        return F.linear(normalised(super().forward(images)), self.projection, self.offset)

    def sharing(self) -> "ScatteringFeatures":
        """Returns a module of its own with the same tensors, which are not copied."""
        tensors = {id(tensor): tensor for tensor in self.buffers()}
        return copy.deepcopy(self, tensors)


def head(features: ScatteringFeatures, classes: int) -> nn.Sequential:
    """Returns the network: the features, a constant input, and a linear layer of zeros.

    Training is convex, so that the layer begins at 0, and no seed is needed.

    Args:
        features: The fixed features, whose tensors the network shares.
        classes: The number of classes.
    """
    linear = nn.Linear(features.count + 1, classes, bias=False)
    nn.init.zeros_(linear.weight)
    return nn.Sequential(features.sharing(), nn.ConstantPad1d((0, 1), BIAS), linear)


@lru_cache(maxsize=4)
def made(shape: tuple[int, int, int]) -> ScatteringFeatures:
    """Returns the features of a shape. They take 15 seconds, once in a process."""
    return ScatteringFeatures(shape, scattering_basis.make(shape))
