"""Defines the one container for labelled images, and its .npz file.

>>> data = Images(np.zeros((2, 4, 4, 1), np.uint8), np.array([0, 1]), np.array([10, 11]))
>>> data.save(Path("two.npz"))
>>> load(Path("two.npz"))[1:].ids
array([11])
"""

import io
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pipelines.config.data import Profile
from pipelines.datasets import npz_reader
from pipelines.errors import UserError
from pipelines.files import AGAIN

# of a padded file: small shards all look alike
LEAST_BYTES = 1 << 16


@dataclass(frozen=True)
class Images:
    """Holds labelled images.

    Attributes:
        images: uint8 [n, H, W, C].
        labels: int64 [n], 0 to classes - 1.
        ids: int64 [n], the record's name: where it stood in its source, or a hash of its file's
            name. It is not made of pixels, so maps that must not look at content (record to
            teacher) use it. Synthetic images have none (-1).
        owners: strings [n], the site that holds each record, or None if the source names none.
            Only the way from the source to the partition looks at it.
    """

    images: np.ndarray
    labels: np.ndarray
    ids: np.ndarray
    owners: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index) -> "Images":
        owners = None if self.owners is None else self.owners[index]
        return Images(self.images[index], self.labels[index], self.ids[index], owners)

    @property
    def pixels(self) -> np.ndarray:
        """Returns the pixels as float32 [n, H, W, C] in [0, 1]."""
        return self.images.astype(np.float32) / 255

    def save(
        self,
        path: Path,
        salt: bytes | None = None,
        *,
        class_names: list[str] | None = None,
        with_owners: bool = False,
    ) -> None:
        """Writes the container. A private one is salted and padded to a power of two bytes.

        `dvc.lock` holds hash and size of every file: without a salt it would confirm a guess of
        the records, without padding it would tell their number. The file is not compressed: that
        is quick, and a search for one record's bytes in what left the machine means something.

        Args:
            path: The file.
            salt: The secret bytes of a private file (salting.py), or None.
            class_names: Names by label, which an exported file may carry, or None.
            with_owners: Whether the owners are written, where the records have some.
        """
        content = {"images": self.images, "labels": self.labels, "ids": self.ids}
        if class_names:
            content["class_names"] = np.array(class_names)
        if with_owners and self.owners is not None:
            content["owners"] = self.owners
        if salt is None:
            np.savez(path, **content)
            return
        content["salt"] = np.frombuffer(salt, np.uint8)
        bare = _length({**content, "padding": np.zeros(0, np.uint8)})
        padding = np.zeros(max(LEAST_BYTES, 1 << (bare - 1).bit_length()) - bare, np.uint8)
        np.savez(path, **content, padding=padding)


def synthetic(pixels: np.ndarray, labels: np.ndarray) -> Images:
    """Returns images from floats [n, H, W, C] in [0, 1]; they carry no record ids.

    >>> synthetic(np.full((1, 1, 1, 1), 0.5), np.array([3])).images.tolist()
    [[[[128]]]]
    """
    images = np.rint(np.clip(pixels, 0, 1) * 255).astype(np.uint8)
    return without_ids(images, labels.astype(np.int64))


def without_ids(images: np.ndarray, labels: np.ndarray) -> Images:
    """Returns images that carry no record ids, as synthetic ones.

    Args:
        images: uint8 [n, H, W, C].
        labels: int64 [n].
    """
    return Images(images, labels, np.full(len(labels), -1, np.int64))


def unlabelled(images: np.ndarray) -> Images:
    """Returns images that have no labels and no ids, from an array.

    Args:
        images: uint8 [n, H, W, C].

    Raises:
        UserError: The array is another one.
    """
    if images.dtype != np.uint8 or images.ndim != 4:
        raise UserError(
            f"Images must be uint8 [n, height, width, channels]. Got {images.dtype} "
            f"{list(images.shape)} instead."
        )
    return without_ids(images, np.full(len(images), -1))


def concatenate(sets: list[Images]) -> Images:
    """Returns the images of all sets, in their order and without their owners."""
    return Images(
        np.concatenate([data.images for data in sets]),
        np.concatenate([data.labels for data in sets]),
        np.concatenate([data.ids for data in sets]),
    )


def first_of_each_class(data: Images, count: int | None) -> Images:
    """Returns the first `count` images of each class, in their order; all of them for None.

    >>> data = Images(np.zeros((3, 4, 4, 1), np.uint8), np.array([1, 1, 0]), np.array([7, 8, 9]))
    >>> first_of_each_class(data, 1).ids
    array([7, 9])

    Args:
        data: The images.
        count: How many of a class.
    """
    if count is None:
        return data
    rows = [np.flatnonzero(data.labels == label)[:count] for label in np.unique(data.labels)]
    return data[np.sort(np.concatenate(rows))]


def _length(content: dict[str, np.ndarray]) -> int:
    buffer = io.BytesIO()
    np.savez(buffer, **content)
    return buffer.tell()


def load(path: Path, profile: Profile | None = None, *, with_owners: bool = False) -> Images:
    """Reads a container.

    `images` may lack the channel axis, and `ids` default to the position in the file.

    Args:
        path: The file.
        profile: What the images must fit, or None. With a profile there must be some, too.
        with_owners: Whether the array `owners` is read, where there is one.

    Raises:
        UserError: The file is absent, truncated, or not such a container. What the user can mend is
            said.
    """
    wanted = ("images", "labels", "ids", "owners")
    arrays = npz_reader.read_arrays(path, wanted if with_owners else wanted[:-1])
    data = Images(*npz_reader.check(arrays, path))
    owners = arrays.get("owners")
    if owners is not None:
        data = replace(data, owners=npz_reader.check_owners("owners", owners, len(data), path))
    if profile is not None:
        _check_fit(data, path, profile)
    return data


def class_names(path: Path) -> list[str] | None:
    """Returns the optional array `class_names` of a container, strings [classes], or None.

    Raises:
        UserError: As `load`, or it is no such array.
    """
    names = npz_reader.read_arrays(path, ("class_names",)).get("class_names")
    if names is None:
        return None
    npz_reader.check_names(names, path)
    return names.tolist()


def _check_fit(data: Images, path: Path, profile: Profile) -> None:
    """Raises UserError if images or labels are not those that the profile declares."""
    shape = list(data.images.shape[1:])
    labels = ""
    fits = shape == profile.shape and len(data) > 0
    if len(data):
        least = data.labels.min()
        most = data.labels.max()
        labels = f" of labels {least} to {most}"
        fits = fits and least >= 0 and most < profile.classes
    if not fits:
        raise UserError(
            f"{path} must hold images {profile.shape} of labels 0 to {profile.classes - 1}. "
            f"Got {len(data)} images {shape}{labels} instead. {AGAIN}"
        )
