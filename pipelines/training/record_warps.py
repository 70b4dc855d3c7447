"""Warps private records, each by draws that follow from its own pixels, so that none moves another's.

A linear head learns from every record and from warped copies of it, of which all together have the
gradient norm of one record (`privacy/lattice_gradients`). So a copy must be a function of its record
alone. An id would not do: where ids are positions, a record that goes renames all behind it. Images
are warped in batches of one size, the last filled up with zeros, so that each takes the same way
through the processor.
"""

import hashlib

import numpy as np
import torch

from pipelines.config.data import Augmentation
from pipelines.datasets.labelled_images import Images
from pipelines.training.augmentation import AFFINE, ELASTIC, warp_by

BATCH = 256
# of the draws: another number would be another set of public constants
KEY = 20_261_126


def warped(data: Images, settings: Augmentation, number: int) -> Images:
    """Returns a warped copy of each record, with its label and id.

    Args:
        data: The private records.
        settings: The most that each warp may be; `noise` is not read.
        number: Of the copy, from 1 on. Another number gives other warps.
    """
    copies = np.empty_like(data.images)
    for start in range(0, len(data), BATCH):
        block = slice(start, start + BATCH)
        images = data.images[block]
        draws, coarse = _draws(images, number)
        floats = torch.from_numpy(_filled(images)).permute(0, 3, 1, 2).float() / 255
        moved = warp_by(floats, settings, draws, coarse if settings.elastic > 0 else None)
        pixels = (moved.clamp(0, 1) * 255).round().to(torch.uint8)
        copies[block] = pixels.permute(0, 2, 3, 1).numpy()[: len(images)]
    return Images(copies, data.labels, data.ids, data.owners)


def _filled(images: np.ndarray) -> np.ndarray:
    """Returns a batch of BATCH images, of which those that are missing are zeros."""
    missing = BATCH - len(images)
    return np.pad(images, ((0, missing), (0, 0), (0, 0), (0, 0)))


def _draws(images: np.ndarray, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the draws of BATCH images, of which those that are missing draw nothing."""
    affine = np.zeros((BATCH, AFFINE), np.float32)
    coarse = np.zeros((BATCH, *ELASTIC), np.float32)
    for row, image in enumerate(images):
        # a stream by itself for each image and copy
        stream = np.random.default_rng([KEY, number, _digest(image)])
        affine[row] = stream.random(AFFINE)
        coarse[row] = stream.standard_normal(ELASTIC)
    return torch.from_numpy(affine), torch.from_numpy(coarse)


def _digest(image: np.ndarray) -> int:
    return int.from_bytes(hashlib.sha256(image.tobytes()).digest())
