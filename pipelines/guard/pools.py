"""Checks the images that go out with a model: each of them must be in an export of the same generator.

A pool lies beside weights, where no sum says what it must hold. Whatever else came into it would leave.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from pipelines.datasets import labelled_images
from pipelines.errors import UserError


def problem(pool: Path, exports: Iterable[Path]) -> str:
    """Returns what is wrong with a pool, as the end of a sentence about it; "" if nothing is.

    Args:
        pool: The file of the pool.
        exports: The files of the images that clients exported.
    """
    try:
        exported = set()
        for path in exports:
            exported |= _images(path)
        strange = len(_images(pool) - exported)
    except UserError:
        return "or an export that it is made of cannot be read."
    return f"holds {strange} images that no export holds." if strange else ""


def _images(path: Path) -> set[bytes]:
    """Returns each image of a file with its label, as bytes."""
    data = labelled_images.load(path)
    pairs = zip(data.images, data.labels)
    return {image.tobytes() + np.int64(label).tobytes() for image, label in pairs}
