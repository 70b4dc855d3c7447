"""Provides the public basis of the `scatter` network as a file.

It is made once on a machine, from a constant seed, and is stored in `.scratch/bases`. The SHA-256
of that file names the features, and both sides of a network compare it.
"""

import contextlib
import hashlib
from collections.abc import Iterator
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from models import scattering_basis
from models.scattering_basis import Basis
from pipelines.errors import UserError
from pipelines.files import arrays_as_bytes, read_arrays, write_cache
from pipelines.paths import SCRATCH
from pipelines.training.tensors import one_thread

BASES = SCRATCH / "bases"
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
    basis = _made(shape)
    content = arrays_as_bytes(basis._asdict())
    made = StoredBasis(basis, hashlib.sha256(content).hexdigest())
    if in_memory is None:
        write_cache(path, content)
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


def _made(shape: tuple[int, int, int]) -> Basis:
    """Returns the basis for images of a shape, with a bar if that takes seconds."""
    batches = -(-scattering_basis.IMAGES // scattering_basis.AT_ONCE)
    bar = partial(
        tqdm,
        desc=f"public basis {'x'.join(map(str, shape))}",
        total=batches,
        disable=None,
        delay=PATIENCE,
    )
    with one_thread():
        return scattering_basis.make(shape, progress=bar)


def _read(path: Path) -> StoredBasis | None:
    """Returns the basis of a file, or None if it is absent or damaged."""
    try:
        basis = Basis(**read_arrays(path))
    except (UserError, TypeError):
        return None
    return StoredBasis(basis, hashlib.sha256(path.read_bytes()).hexdigest())
