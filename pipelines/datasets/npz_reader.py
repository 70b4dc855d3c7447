"""Reads the arrays of a container of images, an .npz file, and says what is wrong with one.

Files are the user's own or may be damaged. Whatever a file holds, it is read or refused in one
sentence; where the user can convert the arrays, the sentence has the line that does it. Python
objects are never loaded.
"""

import math
import warnings
import zipfile
from pathlib import Path

import numpy as np
from numpy.lib.format import MAGIC_PREFIX, read_array

from pipelines.config.data import channels_first
from pipelines.errors import UserError, printable

CHANNELS_LAST = "images = np.moveaxis(images, 1, -1)"
_SAVE = "Save the arrays by their names: np.savez({path!r}, images=images, labels=labels)."
_NAMED = "class_names, labels = np.unique(labels.astype(str), return_inverse=True)"
_OBJECTS = {
    "images": "Save uint8 [n, H, W, C]; images of several sizes go into folders (source: folder).",
    "labels": f"Save ints: labels = labels.astype(np.int64), or, where they are names, {_NAMED}.",
    "ids": "Save ints: ids = ids.astype(np.int64).",
    "class_names": "Save strings: class_names = class_names.astype(str).",
    "clients": "Save strings: clients = clients.astype(str).",
    "owners": "Save strings: owners = owners.astype(str).",
}
# before the names of the arrays of a part of the records
PARTS = ("train_", "val_", "test_")


def read_arrays(path: Path, wanted: tuple[str, ...]) -> dict[str, np.ndarray | None]:
    """Returns the wanted arrays of a file by name, and of all others the name alone, with None.

    Raises:
        UserError: The file is absent, damaged or no .npz, or a wanted array holds Python objects.
    """
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no file.")
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC_PREFIX)) == MAGIC_PREFIX:
                raise UserError(
                    f"{path} is a single array, not a readable .npz. {_SAVE.format(path=str(path))}"
                )
        return _members(path, wanted)
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(
            f"{path} is missing. Run the stage that makes it, or put it there."
        ) from None
    except Exception as error:
        # zipfile, zlib and numpy each have errors of their own for a damaged file
        reason = " ".join(printable(error).split())
        raise UserError(
            f"{path} is corrupt or truncated, not a readable .npz ({reason})."
        ) from None


def _members(path: Path, wanted: tuple[str, ...]) -> dict[str, np.ndarray | None]:
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            name = member.removesuffix(".npy")
            arrays[name] = _array(archive, name, path) if name in wanted else None
    return arrays


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
                f"{name!r} of {path} holds Python objects, which are never loaded. "
                f"{_OBJECTS[_without_part(name)]}"
            )
            raise UserError(sentence) from None
        # the checksum is looked at where the member ends, which a damaged header moves
        if member.read(1):
            raise ValueError(f"{name!r} is longer than its header says")
    return array


def _without_part(name: str) -> str:
    """Returns the name of an array without the part of the records that it begins with."""
    for part in PARTS:
        name = name.removeprefix(part)
    return name


def check(
    content: dict[str, np.ndarray | None], path: Path, part: str = ""
) -> tuple[np.ndarray, ...]:
    """Returns images uint8 [n, H, W, C], labels int64 [n] and ids int64 [n].

    `images` may lack the channel axis, and `ids` default to the position in the file.

    Args:
        content: The arrays of a file, from `read_arrays`.
        path: The file, which errors name.
        part: What the arrays' names begin with, one of PARTS or "".

    Raises:
        UserError: An array is missing or of another kind. What the user can mend is said.
    """
    if not {f"{part}images", f"{part}labels"} <= set(content):
        raise UserError(
            f"{path} must hold '{part}images' and '{part}labels'. Got {sorted(content)} instead. "
            f"{_SAVE.format(path=str(path))}"
        )
    images = content[f"{part}images"]
    labels = content[f"{part}labels"]
    images = images[..., None] if images.ndim == 3 else images
    if images.dtype != np.uint8 or images.ndim != 4:
        raise UserError(
            f"'{part}images' of {path} must be uint8 [n, H, W, C]. "
            f"Got {images.dtype} {images.shape} instead.{_images_mended(images)}"
        )
    _check_ints(f"{part}labels", labels, path, _labels_mended(labels))
    if len(labels) != len(images):
        raise UserError(
            f"'{part}labels' of {path} must be ints [n], one per image. "
            f"Got {len(labels)} labels for {len(images)} images instead."
        )
    ids = content.get(f"{part}ids", np.arange(len(labels)))
    _check_ints(f"{part}ids", ids, path, "")
    if len(ids) != len(labels):
        raise UserError(
            f"'{part}ids' of {path} must be ints [n], one per image. "
            f"Got {len(ids)} ids for {len(images)} images instead."
        )
    return images, labels.astype(np.int64), ids.astype(np.int64)


def check_names(names: np.ndarray, path: Path) -> None:
    """Raises UserError if `class_names` is no list of strings."""
    if names.dtype.kind != "U" or names.ndim != 1:
        raise UserError(
            f"'class_names' of {path} must be strings, one per class. "
            f"Got {names.dtype} {names.shape} instead."
        )


def check_owners(name: str, owners: np.ndarray, count: int, path: Path) -> np.ndarray:
    """Returns owners as strings [n]; whole numbers become the texts of their digits.

    Args:
        name: The name of the array.
        owners: The array.
        count: The number of records.
        path: The file, which errors name.

    Raises:
        UserError: The array is of another kind or length, or a record has no owner.
    """
    if owners.ndim != 1 or owners.dtype.kind not in "iuU":
        raise UserError(
            f"{name!r} of {path} must be strings or ints [n], one per image. "
            f"Got {owners.dtype} {owners.shape} instead."
        )
    if len(owners) != count:
        raise UserError(
            f"{name!r} of {path} must be strings or ints [n], one per image. "
            f"Got {len(owners)} for {count} images instead."
        )
    owners = owners.astype(str)
    without = np.flatnonzero(np.char.strip(owners) == "")
    if len(without):
        raise UserError(
            f"{name!r} of {path} must name the owner of every record. "
            f"Got {len(without)} without one, the first at position {without[0]}."
        )
    return owners


def _check_ints(name: str, values: np.ndarray, path: Path, mended: str) -> None:
    """Raises UserError, with what mends the array, if it is no list of ints below 2**63."""
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise UserError(
            f"{name!r} of {path} must be ints [n], one per image. "
            f"Got {values.dtype} {values.shape} instead.{mended}"
        )
    # as int64 such a number would turn negative without a word
    if values.size and values.max() > np.iinfo(np.int64).max:
        raise UserError(f"{name!r} of {path} must be below 2**63. Got {values.max()} instead.")


def channels_are_first(images: str, shape: tuple[int, ...] | list[int]) -> UserError:
    """Returns the error for images [C, H, W], which names the line that mends them.

    Args:
        images: What the images are, for the text.
        shape: The shape of one of them.
    """
    channels, *sides = shape
    return UserError(
        f"{images} have their channels first, {['n', *shape]}. The channels must be last, "
        f"{['n', *sides, channels]}. Convert: {CHANNELS_LAST}."
    )


def _images_mended(images: np.ndarray) -> str:
    """Returns how such images become uint8 [n, H, W, C], or nothing where that is not clear."""
    steps = []
    if images.ndim == 2:
        side = math.isqrt(images.shape[1])
        is_square = side > 1 and side**2 == images.shape[1]
        sizes = f"{side}, {side}, 1" if is_square else "height, width, channels"
        steps.append(f"images = images.reshape(len(images), {sizes})")
    if images.ndim == 4 and channels_first(images.shape[1:]):
        steps.append(CHANNELS_LAST)
    if images.dtype != np.uint8 and images.dtype.kind in "buif" and images.size:
        steps.append(_as_bytes(images))
    return f" Convert: {'; '.join(steps)}." if steps else ""


def _as_bytes(images: np.ndarray) -> str:
    """Returns the line that turns pixels of this kind into uint8."""
    least = images.min()
    most = images.max()
    if images.dtype.kind == "b" or (images.dtype.kind == "f" and least >= 0 and most <= 1):
        return "images = np.rint(images * 255.0).astype(np.uint8)"
    if least >= 0 and most <= 255:
        return "images = images.astype(np.uint8)"
    if images.dtype == np.uint16:
        return "images = (images >> 8).astype(np.uint8)"
    return "bring the pixels into [0, 255], then images = np.rint(images).astype(np.uint8)"


def _labels_mended(labels: np.ndarray) -> str:
    """Returns how such labels become ints [n], or nothing where that is not clear."""
    if labels.dtype.kind in "US":
        return f" Convert: {_NAMED}, and save class_names, too."
    if labels.ndim == 2 and labels.shape[1] == 1:
        return " Convert: labels = labels.ravel().astype(np.int64)."
    if labels.ndim == 2:
        return " Convert, where each row marks its class: labels = labels.argmax(1)."
    if labels.ndim == 1 and labels.dtype.kind in "bf":
        return " Convert: labels = labels.astype(np.int64)."
    return ""
