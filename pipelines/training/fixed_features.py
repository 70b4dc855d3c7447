"""Provides the fixed features of the networks `scatter` and `encoder`, and a cache of them.

The features of private records are as private as the records. They cost 0.6 to 2 ms for each image
by scattering, and some 10 ms by an encoder, so that training on them alone makes each step about a
hundred times faster.

>>> images = Images(np.zeros((3, 8, 8, 1), np.uint8), np.arange(3), np.arange(3))
>>> features(images).shape
(3, 214)
"""

import contextlib
import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

from models.fixed_features import FixedFeatures
from models.scattering_features import ScatteringFeatures
from pipelines.config.data import ON_FIXED_FEATURES, Encoder, Profile
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.files import arrays_as_bytes, read_arrays, write_cache
from pipelines.training import encoder_weights, public_basis
from pipelines.training.tensors import tensors

# images of a pass, a multiple of those that scattering takes at once
BATCH = 16
# seconds before a bar shows
PATIENCE = 5


class Fixed(NamedTuple):
    """Says which fixed features images have.

    Attributes:
        shape: (height, width, channels) of an image.
        encoder: The frozen network; None: scattering.
    """

    shape: tuple[int, int, int]
    encoder: Encoder | None = None

    @property
    def count(self) -> int:
        """Returns how many features an image has."""
        if not self.encoder:
            return len(public_basis.stored_basis(self.shape).basis.directions)
        return _encoded(self.encoder).features.count

    @property
    def facts(self) -> dict[str, object]:
        """Returns what names the features in a statement: the hash of their public numbers."""
        if not self.encoder:
            return {"basis_sha256": public_basis.stored_basis(self.shape).sha256}
        return {
            "encoder": self.encoder.network,
            "side": self.encoder.side,
            "weights_sha256": _encoded(self.encoder).sha256,
        }


def of(profile: Profile, network: str) -> Fixed | None:
    """Returns which fixed features a network has, or None if it has none.

    Args:
        profile: Of the data set.
        network: The name of the network.
    """
    if network not in ON_FIXED_FEATURES:
        return None
    return Fixed(tuple(profile.shape), profile.encoder if network == "encoder" else None)


@lru_cache(maxsize=4)
def module(fixed: Fixed) -> FixedFeatures:
    """Returns the fixed features as a module. The networks of one process share their tensors.

    Raises:
        UserError: The encoder's weights cannot be read, or the public basis cannot be written.
    """
    if fixed.encoder:
        return _encoded(fixed.encoder).features
    return ScatteringFeatures(fixed.shape, public_basis.stored_basis(fixed.shape).basis)


@lru_cache(maxsize=4)
def _encoded(encoder: Encoder) -> encoder_weights.Encoded:
    return encoder_weights.read(encoder)


def features(data: Images, fixed: Fixed | None = None, folder: Path | None = None) -> np.ndarray:
    """Returns the fixed features of images, float32 [n, k].

    Features of private images are private.

    Args:
        data: The images.
        fixed: Which features they are; None: scattering.
        folder: A private folder that keeps the features, or None. A file in it is named after the
            features' public numbers and the images, so that it is read only for the same.

    Raises:
        UserError: The folder cannot be written.
    """
    fixed = fixed or Fixed(data.images.shape[1:])
    path = None
    if folder:
        named = json.dumps(fixed.facts, sort_keys=True) + str(data.images.shape)
        digest = hashlib.sha256(named.encode() + np.ascontiguousarray(data.images).tobytes())
        path = folder / f"features-{digest.hexdigest()[:32]}.safetensors"
        # an absent or damaged file is made again
        with contextlib.suppress(UserError, KeyError):
            return read_arrays(path)["features"]
    result = _in_batches(module(fixed), tensors(data)[0]).numpy()
    if path:
        write_cache(path, arrays_as_bytes({"features": result}))
    return result


def without_fixed_part(model: nn.Module, images: torch.Tensor) -> tuple[nn.Module, torch.Tensor]:
    """Returns the part of a network that is trained, and what enters it.

    The part has the network's own parameters under their own names, so that training it trains the
    network. A network without fixed features comes back as it is, with its images.

    Args:
        model: The network.
        images: float32 [n, C, H, W], on the device of the network, not to be warped any more.
    """
    if not (isinstance(model, nn.Sequential) and isinstance(model[0], FixedFeatures)):
        return model, images
    return model[1:], _in_batches(model[0], images)


def _in_batches(fixed: FixedFeatures, images: torch.Tensor) -> torch.Tensor:
    """Returns the features [n, k] of images [n, C, H, W], with a bar if that takes seconds.

    The last batch is filled up with zeros. In batches of one size each image takes the same way
    through the processor, so that its features depend on no other image, to the last bit.
    """
    batches = images.split(BATCH) if len(images) else ()
    parts = [images.new_zeros(0, fixed.count)]
    with torch.no_grad():
        for batch in tqdm(batches, desc="features", disable=None, delay=PATIENCE):
            missing = BATCH - len(batch)
            filled = F.pad(batch, (0, 0, 0, 0, 0, 0, 0, missing)) if missing else batch
            parts.append(fixed(filled)[: len(batch)])
    return torch.cat(parts)
