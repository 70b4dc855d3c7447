"""Where real images come from: a small registry of named sources. Adding one is a function here.

A source takes the keywords `root` (the folder of raw files), `dataset` (its name in params.yaml) and `shape`, and
returns its records and, where its publisher split one off, its test set.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from pipelines.config.data import channels_first
from pipelines.config.values import mistake
from pipelines.datasets import image_folder, labelled_images, torchvision_sets
from pipelines.datasets.labelled_images import Images, load
from pipelines.errors import UserError


def digits(**_) -> tuple[Images, None]:
    """scikit-learn's bundled digits: 1,797 grey 8x8 images of ten classes (grey levels 0 to 16)."""
    from sklearn.datasets import load_digits

    bundle = load_digits()
    images = np.rint(bundle.images[..., None] * (255 / 16)).astype(np.uint8)
    return Images(images, bundle.target.astype(np.int64), np.arange(len(images))), None


def npz(*, root: Path, dataset: str, **_) -> tuple[Images, None]:
    """The user's own images, `ROOT/DATASET.npz`."""
    path = root / f"{dataset}.npz"
    if not path.exists():
        raise UserError(
            f"{path} is missing. Put it there, or name the folder that has it in 'prepare.root'. (params.yaml)"
        )
    return load(path), None


SOURCES: dict[str, Callable] = {
    "digits": digits,
    **{
        name: partial(torchvision_sets.read, class_name)
        for name, class_name in torchvision_sets.CLASSES.items()
    },
    "folder": image_folder.read,
    "npz": npz,
}


def read(
    dataset: str,
    *,
    name: str,
    classes: int,
    shape: list[int],
    root: Path,
    on_unreadable: str = "fail",
) -> tuple[Images, Images | None]:
    """All records of a data set, and its official test set or None; ids are unique over both.

    Args:
        on_unreadable: what becomes of the image files that cannot be read, "fail" or "skip".

    Raises:
        UserError: no such root, images of another shape, a label outside the declared list, a declared class without a
            record, or an id that names two records or is negative.
    """
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
            f"Class {missing[0]} of {dataset} has no record at all; profiles.{dataset}.classes is {classes}. "
            "Declare fewer classes or add its images."
        )
    names, counts = np.unique(np.concatenate([part.ids for part in parts]), return_counts=True)
    if np.any(counts > 1):
        raise UserError(
            f"The ids of {dataset} must name one record each. Got {int(names[counts > 1][0])} twice instead."
        )
    return records, test


def class_names(
    dataset: str, *, name: str, root: Path, classes: int, declared: list[str] | None
) -> list[str] | None:
    """Returns the classes' names by label: those in the images' folders or file, else the `declared` ones, else None.

    Raises:
        UserError: the profile declares other names than the images have.
    """
    given_names = None
    if name == "folder":
        given_names = image_folder.classes(root / dataset)
        if len(given_names) != classes:
            raise mistake(
                f"profiles.{dataset}.classes",
                classes,
                f"the number of class folders, {len(given_names)}",
            )
    if name == "npz":
        given_names = labelled_images.class_names(root / f"{dataset}.npz")
        if given_names is not None and len(given_names) != classes:
            where = root / f"{dataset}.npz"
            raise UserError(
                f"'class_names' of {where} must name {classes} classes. Got {len(given_names)} names instead."
            )
    if given_names and declared and given_names != declared:
        where = (
            "the class folders' names, sorted by their characters"
            if name == "folder"
            else "those in the .npz"
        )
        raise mistake(f"profiles.{dataset}.class_names", declared, f"{where}, {given_names}")
    return given_names or declared


def _check_declared(data: Images, dataset: str, classes: int, shape: list[int]) -> None:
    image_shape = list(data.images.shape[1:])
    if (
        image_shape != shape
        and sorted(image_shape) == sorted(shape)
        and channels_first(image_shape)
    ):
        raise UserError(
            f"The images of {dataset} have their channels first, {['n', *image_shape]}. The channels must be last, "
            f"{['n', *shape]}. Convert: {labelled_images.CHANNELS_LAST}."
        )
    if len(data) and data.ids.min() < 0:
        raise UserError(
            f"The ids of {dataset} must be 0 or above: -1 marks synthetic images. Got {data.ids.min()} instead."
        )
    if image_shape != shape:
        raise mistake(f"profiles.{dataset}.shape", shape, f"the images' own, {image_shape}")
    if len(data) and (data.labels.min() < 0 or data.labels.max() >= classes):
        raise UserError(
            f"The labels of {dataset} must be in [0, {classes - 1}]. "
            f"Got {data.labels.min()} to {data.labels.max()} instead."
        )
