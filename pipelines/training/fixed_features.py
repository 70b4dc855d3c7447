"""Provides the fixed features of the `scatter` network: the public basis as a file, and a cache.

The basis is made once on a machine, from a constant seed, and is stored in `.scratch/bases`. It is
public. The SHA-256 of that file names the features, and both sides of a network compare it.

The features of private records are as private as the records. They cost 0.6 to 2 ms for each image,
so that training on them alone makes each step about a hundred times faster.

>>> images = Images(np.zeros((3, 8, 8, 1), np.uint8), np.arange(3), np.arange(3))
>>> features(images).shape
(3, 214)
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save as serialised
from torch import nn
from tqdm import tqdm

from models import scattering_basis
from models.scattering_basis import Basis
from models.scattering_features import ScatteringFeatures
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.files import read_arrays
from pipelines.paths import SCRATCH
from pipelines.training.tensors import one_thread, tensors

BASES = SCRATCH / "bases"
# images of a pass, a multiple of those that the transform takes at once
BATCH = 16
# seconds before a bar shows
PATIENCE = 5
# bases by shape while nothing may be stored, else None
_IN_MEMORY: ContextVar[dict | None] = ContextVar("in_memory", default=None)


class StoredBasis(NamedTuple):
    """Holds a public basis and the name of its file's content.

    Attributes:
        basis: The basis.
        sha256: Of the file's bytes, in hexadecimal.
    """

    basis: Basis
    sha256: str


def stored_basis(shape: tuple[int, int, int]) -> StoredBasis:
    """Returns the public basis for images of a shape, made where this machine has none yet.

    Args:
        shape: (height, width, channels) of an image.

    Raises:
        UserError: The file cannot be written.
    """
    path = BASES / f"scattering-{'x'.join(map(str, shape))}-{scattering_basis.VERSION}.safetensors"
    stored = _read(path)
    if stored:
        return stored
    in_memory = _IN_MEMORY.get()
    if in_memory is not None and shape in in_memory:
        return in_memory[shape]
    basis, content = _made(shape)
    made = StoredBasis(basis, hashlib.sha256(content).hexdigest())
    if in_memory is None:
        _write(path, content)
    else:
        in_memory[shape] = made
    return made


@contextlib.contextmanager
def storing_nothing() -> Iterator[None]:
    """Keeps a basis that this machine lacks in memory alone, for a command that writes no file."""
    token = _IN_MEMORY.set({})
    try:
        yield
    finally:
        _IN_MEMORY.reset(token)


def _made(shape: tuple[int, int, int]) -> tuple[Basis, bytes]:
    """Returns the basis for images of a shape, and its file's content."""
    batches = -(-scattering_basis.IMAGES // scattering_basis.AT_ONCE)
    bar = partial(
        tqdm,
        desc=f"public basis {'x'.join(map(str, shape))}",
        total=batches,
        disable=None,
        delay=PATIENCE,
    )
    with one_thread():
        basis = scattering_basis.make(shape, progress=bar)
    arrays = {name: np.ascontiguousarray(array) for name, array in basis._asdict().items()}
    return basis, serialised(arrays)


def _read(path: Path) -> StoredBasis | None:
    """Returns the basis of a file, or None if it is absent or damaged."""
    try:
        basis = Basis(**read_arrays(path))
    except (UserError, TypeError):
        return None
    return StoredBasis(basis, hashlib.sha256(path.read_bytes()).hexdigest())


@lru_cache(maxsize=4)
def of_shape(shape: tuple[int, int, int]) -> ScatteringFeatures:
    """Returns the fixed features of images of a shape (height, width, channels).

    The networks of one process share their tensors.
    """
    return ScatteringFeatures(shape, stored_basis(shape).basis)


def features(data: Images, folder: Path | None = None) -> np.ndarray:
    """Returns the fixed features of images, float32 [n, k].

    Features of private images are private.

    Args:
        data: The images.
        folder: A private folder that keeps the features, or None. A file in it is named after the
            basis and the images, so that it is read only for the same.

    Raises:
        UserError: The folder cannot be written.
    """
    shape = data.images.shape[1:]
    path = None
    if folder:
        digest = hashlib.sha256(stored_basis(shape).sha256.encode())
        digest.update(str(data.images.shape).encode() + np.ascontiguousarray(data.images).tobytes())
        path = folder / f"features-{digest.hexdigest()[:32]}.safetensors"
        # an absent or damaged file is made again
        with contextlib.suppress(UserError, KeyError):
            return read_arrays(path)["features"]
    result = _in_batches(of_shape(shape), tensors(data)[0]).numpy()
    if path:
        _write(path, serialised({"features": result}))
    return result


def without_fixed_part(model: nn.Module, images: torch.Tensor) -> tuple[nn.Module, torch.Tensor]:
    """Returns the part of a network that is trained, and what enters it.

    The part has the network's own parameters under their own names, so that training it trains the
    network. A network without fixed features comes back as it is, with its images.

    Args:
        model: The network.
        images: float32 [n, C, H, W], on the device of the network, not to be warped any more.
    """
    if not (isinstance(model, nn.Sequential) and isinstance(model[0], ScatteringFeatures)):
        return model, images
    return model[1:], _in_batches(model[0], images)


def _in_batches(fixed: ScatteringFeatures, images: torch.Tensor) -> torch.Tensor:
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


def _write(path: Path, content: bytes) -> None:
    """Writes a file whole, for this user alone; of two writers at once the last one wins."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, beside = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(beside, path)
    except OSError as error:
        raise UserError(f"Could not write {path}: {error.strerror or error}.") from error
