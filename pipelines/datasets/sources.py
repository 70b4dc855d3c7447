"""Reads real images from one of a small registry of named sources. A new source is a function here.

A source takes the keywords `root` (the folder of raw files), `dataset` (its name in params.yaml)
and `shape`. It returns its records and, where its publisher split one off, its test set.

>>> records, test = read("digits", name="digits", classes=10, shape=[8, 8, 1], root=Path("."))
>>> len(records), test
(1797, None)
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from pipelines.config.data import channels_first
from pipelines.config.values import mistake
from pipelines.datasets import (
    image_folder,
    labelled_images,
    npz_reader,
    npz_source,
    torchvision_sets,
)
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError


def digits(**_) -> tuple[Images, None]:
    """Returns scikit-learn's bundled digits: 1,797 grey 8x8 images of ten classes.

    Their grey levels are 0 to 16.
    """
    from sklearn.datasets import load_digits

    bundle = load_digits()
    images = np.rint(bundle.images[..., None] * (255 / 16)).astype(np.uint8)
    return Images(images, bundle.target.astype(np.int64), np.arange(len(images))), None


SOURCES: dict[str, Callable] = {
    "digits": digits,
    "folder": image_folder.read,
    "site_folder": partial(image_folder.read, by_site=True),
    "npz": npz_source.read,
}
for _name, _class_name in torchvision_sets.CLASSES.items():
    SOURCES[_name] = partial(torchvision_sets.read, _class_name)


def read(
    dataset: str,
    *,
    name: str,
    classes: int,
    shape: list[int],
    root: Path,
    on_unreadable: str = "fail",
) -> tuple[Images, Images | None]:
    """Returns all records of a data set, and its official test set or None.

    Ids are unique over both. Records that the source says the owners of have `owners`.

    Args:
        dataset: The data set's name.
        name: The source's name, a key of SOURCES.
        classes: The declared number of classes.
        shape: The declared [height, width, channels].
        root: The folder of raw files.
        on_unreadable: What becomes of image files that cannot be read: "fail" or "skip".

    Raises:
        UserError: There is no such source or root, images have another shape, a label lies outside
            the declared list, a declared class has no record, or an id names two records or is
            negative.
    """
    if name not in SOURCES:
        raise mistake(f"profiles.{dataset}.source", name, f"one of {', '.join(SOURCES)}")
    if not root.is_dir():
        raise mistake("prepare.root", str(root), "an existing folder")
    records, test = SOURCES[name](
        root=root, dataset=dataset, shape=shape, on_unreadable=on_unreadable
    )
    parts = [records] if test is None else [records, test]
    for part in parts:
        _check_declared(part, dataset, classes, shape)
    missing = np.setdiff1d(np.arange(classes), records.labels)
    if len(missing):
        raise UserError(
            f"Class {missing[0]} of {dataset} has no record at all; profiles.{dataset}.classes is "
            f"{classes}. Declare fewer classes or add its images."
        )
    names, counts = np.unique(np.concatenate([part.ids for part in parts]), return_counts=True)
    twice = names[counts > 1]
    if len(twice):
        raise UserError(
            f"The ids of {dataset} must name one record each. Got {int(twice[0])} twice instead."
        )
    return records, test


def class_names(
    dataset: str, *, name: str, root: Path, classes: int, declared: list[str] | None
) -> list[str] | None:
    """Returns the classes' names by label.

    They are those in the images' folders or file, else the declared ones, else None.

    Args:
        dataset: The data set's name.
        name: The source's name.
        root: The folder of raw files.
        classes: The declared number of classes.
        declared: The profile's `class_names`, or None.

    Raises:
        UserError: The profile declares other names than the images have.
    """
    image_names = None
    is_folder = name in ("folder", "site_folder")
    if is_folder:
        image_names = image_folder.classes(root / dataset, by_site=name == "site_folder")
        if len(image_names) != classes:
            rule = f"the number of class folders, {len(image_names)}"
            raise mistake(f"profiles.{dataset}.classes", classes, rule)
    if name == "npz":
        path = root / f"{dataset}.npz"
        image_names = labelled_images.class_names(path)
        if image_names is not None and len(image_names) != classes:
            raise UserError(
                f"'class_names' of {path} must name {classes} classes. "
                f"Got {len(image_names)} names instead."
            )
    if image_names and declared and image_names != declared:
        where = "those in the .npz"
        if is_folder:
            where = "the class folders' names, sorted by their characters"
        raise mistake(f"profiles.{dataset}.class_names", declared, f"{where}, {image_names}")
    return image_names or declared


def _check_declared(data: Images, dataset: str, classes: int, shape: list[int]) -> None:
    """Raises UserError if images, labels or ids are not as the profile declares."""
    image_shape = list(data.images.shape[1:])
    is_permuted = image_shape != shape and sorted(image_shape) == sorted(shape)
    if is_permuted and channels_first(image_shape):
        raise npz_reader.channels_are_first(f"The images of {dataset}", image_shape)
    if len(data) and data.ids.min() < 0:
        raise UserError(
            f"The ids of {dataset} must be 0 or above: -1 marks synthetic images. "
            f"Got {data.ids.min()} instead."
        )
    if image_shape != shape:
        raise mistake(f"profiles.{dataset}.shape", shape, f"the images' own, {image_shape}")
    if len(data) and (data.labels.min() < 0 or data.labels.max() >= classes):
        raise UserError(
            f"The labels of {dataset} must be in [0, {classes - 1}]. "
            f"Got {data.labels.min()} to {data.labels.max()} instead."
        )
