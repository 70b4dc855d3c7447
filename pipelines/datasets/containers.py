"""The one container for labelled images, and its .npz file."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.errors import UserError

LEAST_BYTES = 1 << 16  # of a padded file: small shards all look alike


@dataclass(frozen=True)
class Images:
    """Labelled images.

    Attributes:
        images: uint8 [n, H, W, C].
        labels: int64 [n], 0 to classes - 1.
        ids: int64 [n], the record's name: where it stood in its source, or a hash of its file's name. It is not made of
            pixels, so maps that must not look at content (record to teacher) use it. Synthetic images have none (-1).
    """

    images: np.ndarray
    labels: np.ndarray
    ids: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index) -> "Images":
        return Images(self.images[index], self.labels[index], self.ids[index])

    @property
    def pixels(self) -> np.ndarray:
        """float32 [n, H, W, C] in [0, 1]."""
        return self.images.astype(np.float32) / 255

    def save(self, path: Path, salt: bytes | None = None) -> None:
        """Writes the container; a private one with its `salt` (secrets.py), and padded to a power of two bytes.

        `dvc.lock` holds hash and size of every file: without a salt it would confirm a guess of the records, without
        padding it would tell their number. Uncompressed: quick, and a search for one record's bytes in what left the
        machine means something (tests).
        """
        content = {"images": self.images, "labels": self.labels, "ids": self.ids}
        if salt is None:
            np.savez(path, **content)
            return
        content["salt"] = np.frombuffer(salt, np.uint8)
        bare = _length({**content, "padding": np.zeros(0, np.uint8)})
        padding = np.zeros(max(LEAST_BYTES, 1 << (bare - 1).bit_length()) - bare, np.uint8)
        np.savez(path, **content, padding=padding)


def synthetic(pixels: np.ndarray, labels: np.ndarray) -> Images:
    """Images from floats [n, H, W, C] in [0, 1]; they carry no record ids."""
    images = np.rint(np.clip(pixels, 0, 1) * 255).astype(np.uint8)
    return Images(images, labels.astype(np.int64), np.full(len(labels), -1, np.int64))


def concatenate(sets: list[Images]) -> Images:
    return Images(*(np.concatenate([getattr(s, field) for s in sets]) for field in ("images", "labels", "ids")))


def _length(content: dict[str, np.ndarray]) -> int:
    buffer = io.BytesIO()
    np.savez(buffer, **content)
    return buffer.tell()


def load(path: Path) -> Images:
    """Reads a container; `images` may lack the channel axis, and `ids` default to the position in the file.

    Raises:
        UserError: the file is absent, truncated, or not such a container.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            content = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise UserError(f"{path} is missing. Run the stage that makes it, or put it there.") from None
    except Exception as error:  # zipfile, zlib and numpy each have errors of their own for a damaged file
        raise UserError(f"{path} is corrupt or truncated, not a readable .npz ({error}).") from None
    return _checked(content, path)


def _checked(content: dict[str, np.ndarray], path: Path) -> Images:
    if not {"images", "labels"} <= set(content):
        raise UserError(f"{path} must hold 'images' and 'labels'. Got {sorted(content)} instead.")
    images, labels = content["images"], content["labels"]
    images = images[..., None] if images.ndim == 3 else images
    if images.dtype != np.uint8 or images.ndim != 4:
        raise UserError(f"'images' of {path} must be uint8 [n, H, W, C]. Got {images.dtype} {images.shape} instead.")
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or len(labels) != len(images):
        raise UserError(
            f"'labels' of {path} must be ints [n], one per image. Got {labels.dtype} {labels.shape} instead."
        )
    ids = content.get("ids", np.arange(len(labels)))
    if ids.shape != labels.shape or ids.dtype.kind not in "iu":
        raise UserError(f"'ids' of {path} must be ints [n], one per image. Got {ids.dtype} {ids.shape} instead.")
    return Images(images, labels.astype(np.int64), ids.astype(np.int64))
