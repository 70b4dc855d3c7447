"""Where real images come from: a small registry of named sources. Adding one is a function here.

A source takes the keywords `root` (the folder of raw files), `dataset` (its name in params.yaml) and `shape`, and
returns its records and, where its publisher split one off, its test set.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from pipelines.datasets import image_folder, published
from pipelines.datasets.containers import Images, load
from pipelines.errors import UserError
from pipelines.rules import mistake


def digits(**_) -> tuple[Images, None]:
    """scikit-learn's bundled digits: 1,797 grey 8x8 images of ten classes (grey levels 0 to 16)."""
    from sklearn.datasets import load_digits

    bundle = load_digits()
    images = np.rint(bundle.images[..., None] * (255 / 16)).astype(np.uint8)
    return Images(images, bundle.target.astype(np.int64), np.arange(len(images))), None


def npz(*, root: Path, dataset: str, **_) -> tuple[Images, None]:
    """The user's own images, `ROOT/DATASET.npz`."""
    return load(root / f"{dataset}.npz"), None


PUBLIC: dict[str, Callable] = {  # whose records are no secret
    "digits": digits,
    **{name: partial(published.read, class_name) for name, class_name in published.CLASSES.items()},
}
SOURCES: dict[str, Callable] = {**PUBLIC, "folder": image_folder.read, "npz": npz}


def read(dataset: str, *, name: str, classes: int, shape: list[int], root: Path) -> tuple[Images, Images | None]:
    """All records of a data set, and its official test set or None; ids are unique over both.

    Raises:
        UserError: no such root, images of another shape, a label outside the declared list, a declared class without a
            record, or an id that names two records.
    """
    if not root.is_dir():
        raise mistake("prepare.root", str(root), "an existing folder")
    records, test = SOURCES[name](root=root, dataset=dataset, shape=shape)
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


def _check_declared(data: Images, dataset: str, classes: int, shape: list[int]) -> None:
    if list(data.images.shape[1:]) != shape:
        raise mistake(f"profiles.{dataset}.shape", shape, f"the images' own, {list(data.images.shape[1:])}")
    if len(data) and (data.labels.min() < 0 or data.labels.max() >= classes):
        raise UserError(
            f"The labels of {dataset} must be in [0, {classes - 1}]. "
            f"Got {data.labels.min()} to {data.labels.max()} instead."
        )
