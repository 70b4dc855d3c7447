"""Where real images come from: a small registry of named sources. Adding one is a function here."""

from collections.abc import Callable

import numpy as np

from pipelines.datasets.containers import Images, load
from pipelines.errors import UserError
from pipelines.paths import RAW

SOURCES: dict[str, Callable[[str], Images]] = {}


def source(name: str):
    def register(function: Callable[[str], Images]):
        SOURCES[name] = function
        return function

    return register


@source("digits")
def digits(dataset: str) -> Images:
    """scikit-learn's bundled digits: 1,797 grey 8x8 images of ten classes (grey levels 0 to 16)."""
    from sklearn.datasets import load_digits

    bundle = load_digits()
    images = np.rint(bundle.images[..., None] * (255 / 16)).astype(np.uint8)
    return Images(images, bundle.target.astype(np.int64), np.arange(len(images)))


@source("npz")
def npz(dataset: str) -> Images:
    """The user's own images, `raw/DATASET.npz`."""
    return load(RAW / f"{dataset}.npz")


def read(dataset: str, *, name: str, classes: int, shape: list[int]) -> Images:
    """All records of a data set.

    Raises:
        UserError: images of another shape, a label outside the declared list, or a declared class without a record.
    """
    data = SOURCES[name](dataset)
    if list(data.images.shape[1:]) != shape:
        raise UserError(
            f"The 'shape' parameter of profiles.{dataset} must be the images' own, {list(data.images.shape[1:])}. "
            f"Got {shape} instead. (params.yaml)"
        )
    found = np.unique(data.labels)
    if len(found) and (found[0] < 0 or found[-1] >= classes):
        raise UserError(
            f"The labels of {dataset} must be in [0, {classes - 1}]. Got {found[0]} to {found[-1]} instead."
        )
    missing = sorted(set(range(classes)) - set(found.tolist()))
    if missing:
        raise UserError(
            f"Class {missing[0]} of {dataset} has no record at all; profiles.{dataset}.classes is {classes}. "
            "Declare fewer classes or add its images."
        )
    return data
