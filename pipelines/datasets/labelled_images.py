"""The one container for labelled images, and its .npz file."""

import io
import math
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib.format import MAGIC_PREFIX, read_array

from pipelines.config.data import Profile, channels_first
from pipelines.errors import UserError, printable
from pipelines.files import AGAIN

LEAST_BYTES = 1 << 16  # of a padded file: small shards all look alike
CHANNELS_LAST = "images = np.moveaxis(images, 1, -1)"
_SAVE = "Save the arrays by their names: np.savez({path!r}, images=images, labels=labels)."
_NAMED = "class_names, labels = np.unique(labels.astype(str), return_inverse=True)"
_OBJECTS = {
    "images": "Save uint8 [n, H, W, C]; images of several sizes go into folders (source: folder).",
    "labels": f"Save ints: labels = labels.astype(np.int64), or, where they are names, {_NAMED}.",
    "ids": "Save ints: ids = ids.astype(np.int64).",
    "class_names": "Save strings: class_names = class_names.astype(str).",
}


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

    def save(
        self, path: Path, salt: bytes | None = None, *, class_names: list[str] | None = None
    ) -> None:
        """Writes the container; a private one with its `salt` (salting.py), and padded to a power of two bytes.

        An exported one may name its classes, where the profile declares names.
        `dvc.lock` holds hash and size of every file: without a salt it would confirm a guess of the records, without
        padding it would tell their number. Uncompressed: quick, and a search for one record's bytes in what left the
        machine means something (tests).
        """
        content = {"images": self.images, "labels": self.labels, "ids": self.ids}
        if class_names:
            content["class_names"] = np.array(class_names)
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
    return Images(
        *(
            np.concatenate([getattr(s, field) for s in sets])
            for field in ("images", "labels", "ids")
        )
    )


def _length(content: dict[str, np.ndarray]) -> int:
    buffer = io.BytesIO()
    np.savez(buffer, **content)
    return buffer.tell()


def load(path: Path, profile: Profile | None = None) -> Images:
    """Reads a container; `images` may lack the channel axis, and `ids` default to the position in the file.

    Args:
        profile: what the images must fit, where it is given; then there must be some, too.

    Raises:
        UserError: the file is absent, truncated, or not such a container; what the user can mend is said.
    """
    data = _checked(_arrays(path, ("images", "labels", "ids")), path)
    if profile is not None:
        _check_fit(data, path, profile)
    return data


def class_names(path: Path) -> list[str] | None:
    """Returns the optional array `class_names` of a container, strings [classes], or None.

    Raises:
        UserError: as `load`, or it is no such array.
    """
    names = _arrays(path, ("class_names",)).get("class_names")
    if names is None:
        return None
    if names.dtype.kind != "U" or names.ndim != 1:
        raise UserError(
            f"'class_names' of {path} must be strings, one per class. Got {names.dtype} {names.shape} instead."
        )
    return names.tolist()


def _arrays(path: Path, wanted: tuple[str, ...]) -> dict[str, np.ndarray | None]:
    """{name: array} of the `wanted` that the file has; of all others the name alone, with None."""
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no file.")
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC_PREFIX)) == MAGIC_PREFIX:
                raise UserError(
                    f"{path} is a single array, not a readable .npz. {_SAVE.format(path=str(path))}"
                )
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            return {name: _array(archive, name, path) if name in wanted else None for name in names}
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(
            f"{path} is missing. Run the stage that makes it, or put it there."
        ) from None
    except (
        Exception
    ) as error:  # zipfile, zlib and numpy each have errors of their own for a damaged file
        reason = " ".join(printable(error).split())
        raise UserError(
            f"{path} is corrupt or truncated, not a readable .npz ({reason})."
        ) from None


def _array(archive: zipfile.ZipFile, name: str, path: Path) -> np.ndarray:
    with archive.open(f"{name}.npy") as member, warnings.catch_warnings():
        # numpy warns of damaged headers that it then refuses
        warnings.simplefilter("ignore")
        try:
            array = read_array(member, allow_pickle=False)
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise
            sentence = (
                f"{name!r} of {path} holds Python objects, which are never loaded. {_OBJECTS[name]}"
            )
            raise UserError(sentence) from None
        # the checksum is looked at where the member ends, which a damaged header moves
        if member.read(1):
            raise ValueError(f"{name!r} is longer than its header says")
    return array


def _checked(content: dict[str, np.ndarray], path: Path) -> Images:
    if not {"images", "labels"} <= set(content):
        raise UserError(
            f"{path} must hold 'images' and 'labels'. Got {sorted(content)} instead. {_SAVE.format(path=str(path))}"
        )
    images, labels = content["images"], content["labels"]
    images = images[..., None] if images.ndim == 3 else images
    if images.dtype != np.uint8 or images.ndim != 4:
        raise UserError(
            f"'images' of {path} must be uint8 [n, H, W, C]. Got {images.dtype} {images.shape} instead."
            f"{_images_mended(images)}"
        )
    _check_ints("labels", labels, path, _labels_mended(labels))
    if len(labels) != len(images):
        raise UserError(
            f"'labels' of {path} must be ints [n], one per image. "
            f"Got {len(labels)} labels for {len(images)} images instead."
        )
    ids = content.get("ids", np.arange(len(labels)))
    _check_ints("ids", ids, path, "")
    if len(ids) != len(labels):
        raise UserError(
            f"'ids' of {path} must be ints [n], one per image. Got {len(ids)} ids for {len(images)} images instead."
        )
    return Images(images, labels.astype(np.int64), ids.astype(np.int64))


def _check_fit(data: Images, path: Path, profile: Profile) -> None:
    shape, labels = list(data.images.shape[1:]), data.labels
    if (
        shape != profile.shape
        or not len(data)
        or labels.min() < 0
        or labels.max() >= profile.classes
    ):
        found = f"{len(data)} images {shape}{f' of labels {labels.min()} to {labels.max()}' if len(data) else ''}"
        raise UserError(
            f"{path} must hold images {profile.shape} of labels 0 to {profile.classes - 1}. Got {found} instead. "
            f"{AGAIN}"
        )


def _check_ints(name: str, values: np.ndarray, path: Path, mended: str) -> None:
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise UserError(
            f"{name!r} of {path} must be ints [n], one per image. Got {values.dtype} {values.shape} instead.{mended}"
        )
    # as int64 such a number would turn negative without a word
    if values.size and values.max() > np.iinfo(np.int64).max:
        raise UserError(f"{name!r} of {path} must be below 2**63. Got {values.max()} instead.")


def _images_mended(images: np.ndarray) -> str:
    """Returns how such images become uint8 [n, H, W, C], or nothing where that is not clear."""
    steps = []
    if images.ndim == 2:
        side = math.isqrt(images.shape[1])
        sizes = (
            f"{side}, {side}, 1"
            if side > 1 and side**2 == images.shape[1]
            else "height, width, channels"
        )
        steps.append(f"images = images.reshape(len(images), {sizes})")
    if images.ndim == 4 and channels_first(images.shape[1:]):
        steps.append(CHANNELS_LAST)
    if images.dtype != np.uint8 and images.dtype.kind in "buif" and images.size:
        steps.append(_as_bytes(images))
    return f" Convert: {'; '.join(steps)}." if steps else ""


def _as_bytes(images: np.ndarray) -> str:
    least, most = images.min(), images.max()
    if images.dtype.kind == "b" or (images.dtype.kind == "f" and least >= 0 and most <= 1):
        return "images = np.rint(images * 255.0).astype(np.uint8)"
    if least >= 0 and most <= 255:
        return "images = images.astype(np.uint8)"
    if images.dtype == np.uint16:
        return "images = (images >> 8).astype(np.uint8)"
    return "bring the pixels into [0, 255], then images = np.rint(images).astype(np.uint8)"


def _labels_mended(labels: np.ndarray) -> str:
    if labels.dtype.kind in "US":
        return f" Convert: {_NAMED}, and save class_names, too."
    if labels.ndim == 2 and labels.shape[1] == 1:
        return " Convert: labels = labels.ravel().astype(np.int64)."
    if labels.ndim == 2:
        return " Convert, where each row marks its class: labels = labels.argmax(1)."
    if labels.ndim == 1 and labels.dtype.kind in "bf":
        return " Convert: labels = labels.astype(np.int64)."
    return ""
