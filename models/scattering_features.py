"""Defines the fixed features of the `scatter` network: scattering, group norm, a public basis.

The features are functions of one image and of the basis. With the linear layer on them, a model's
state holds 501 numbers for each class on images of 28x28.

>>> features = ScatteringFeatures((8, 8, 1), scattering_basis.make((8, 8, 1), images=200))
>>> features(torch.zeros(2, 1, 8, 8)).shape
torch.Size([2, 153])
"""

from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F

from models import scattering_basis
from models.fixed_features import FixedFeatures
from models.scattering import Scattering, normalised
from models.scattering_basis import Basis


class ScatteringFeatures(FixedFeatures):
    """Maps images [B, C, H, W] to features r [B, k].

    Args:
        shape: (height, width, channels) of an image.
        basis: The public basis for this shape.
    """

    def __init__(self, shape: tuple[int, int, int], basis: Basis):
        super().__init__(len(basis.directions))
        self.scattering = Scattering(*shape[:2])
        projection = basis.directions.astype(np.float64) * basis.weights[:, None]
        self._fix("projection", projection)
        self._fix("offset", -projection @ basis.mean)

    def _fix(self, name: str, values: np.ndarray) -> None:
        self.register_buffer(name, torch.from_numpy(values).float(), persistent=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Returns the features [B, k] of float images [B, C, H, W] in [0, 1]."""
        return F.linear(normalised(self.scattering(images)), self.projection, self.offset)


@lru_cache(maxsize=4)
def made(shape: tuple[int, int, int]) -> ScatteringFeatures:
    """Returns the features of a shape. They take 15 seconds, once in a process."""
    return ScatteringFeatures(shape, scattering_basis.make(shape))
