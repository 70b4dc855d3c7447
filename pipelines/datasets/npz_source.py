"""Reads the user's own `ROOT/DATASET.npz`, which may name a test part of its own.

The records are `images` and `labels`, or `train_images` and `train_labels`, to which
`val_images` and `val_labels` are added. The optional `test_images` and `test_labels` are the
official test set. These are the names of MedMNIST's files.
"""

from pathlib import Path

import numpy as np

from pipelines.datasets import npz_reader
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError

ARRAYS = ("images", "labels", "ids", "clients")


def read(*, root: Path, dataset: str, **_) -> tuple[Images, Images | None]:
    """Returns the records and the file's own test part, or None where it has none.

    A record's id is its position in the file's parts, one after the other, unless `ids` name it.
    Its owner is what `clients` says, if the file has that array.

    Args:
        root: The folder of raw files.
        dataset: The data set's name.

    Raises:
        UserError: The file is missing or no such container.
    """
    path = root / f"{dataset}.npz"
    if not path.exists():
        raise UserError(
            f"{path} is missing. Put it there, or name the folder that has it in 'prepare.root'. "
            "(params.yaml)"
        )
    wanted = []
    for part in ("", *npz_reader.PARTS):
        wanted += [part + name for name in ARRAYS]
    content = npz_reader.read_arrays(path, tuple(wanted))
    parts = _record_parts(content, path)
    has_test = _has(content, "test_")
    _check_all_or_none(content, "ids", [*parts, "test_"] if has_test else parts, path)
    _check_all_or_none(content, "clients", parts, path)
    records = [_part(content, parts[0], 0, path)]
    for part in parts[1:]:
        records.append(_part(content, part, len(records[0]), path))
        _check_shape(part, records[-1], parts[0], records[0], path)
    whole = _together(records)
    if not has_test:
        return whole, None
    test = _part(content, "test_", len(whole), path)
    if not len(test):
        raise UserError(f"'test_images' of {path} must hold at least one image. Got 0 instead.")
    return whole, test


def _has(content: dict, part: str) -> bool:
    return f"{part}images" in content or f"{part}labels" in content


def _record_parts(content: dict, path: Path) -> list[str]:
    """Returns what the names of the arrays of records begin with."""
    split = [part for part in ("train_", "val_") if _has(content, part)]
    if _has(content, "") and split:
        raise UserError(
            f"{path} must hold its records either as 'images' and 'labels' or as 'train_images' "
            f"and 'train_labels'. Got {sorted(content)} instead."
        )
    if split == ["val_"]:
        raise UserError(
            f"{path} must hold 'train_images' beside 'val_images'. Got {sorted(content)} instead."
        )
    return split or [""]


def _check_all_or_none(content: dict, name: str, parts: list[str], path: Path) -> None:
    """Raises UserError if an optional array is there for some parts and not for others."""
    absent = [part + name for part in parts if part + name not in content]
    if absent and len(absent) < len(parts):
        raise UserError(
            f"{path} must hold '{name}' for every part of its images or for none. "
            f"It lacks {', '.join(map(repr, absent))}."
        )


def _part(content: dict, part: str, first_id: int, path: Path) -> Images:
    """Returns one part.

    Args:
        content: The arrays of the file.
        part: What the arrays' names begin with.
        first_id: The id of its first record, if the file has no ids.
        path: The file.
    """
    labels = content.get(f"{part}labels")
    if part and labels is not None and labels.ndim == 2 and labels.shape[1] == 1:
        # as MedMNIST writes them
        content = {**content, f"{part}labels": labels[:, 0]}
    images, labels, ids = npz_reader.check(content, path, part)
    if f"{part}ids" not in content:
        ids = ids + first_id
    owners = content.get(f"{part}clients")
    if owners is not None:
        owners = npz_reader.check_owners(f"{part}clients", owners, len(labels), path)
    return Images(images, labels, ids, owners)


def _check_shape(part: str, images: Images, first_part: str, first: Images, path: Path) -> None:
    """Raises UserError if the images of two parts have different shapes."""
    if images.images.shape[1:] != first.images.shape[1:]:
        raise UserError(
            f"'{part}images' of {path} must have the shape of '{first_part}images', "
            f"{list(first.images.shape[1:])}. Got {list(images.images.shape[1:])} instead."
        )


def _together(parts: list[Images]) -> Images:
    """Returns the records of all parts, with their owners."""
    if len(parts) == 1:
        return parts[0]
    arrays = []
    for name in ("images", "labels", "ids"):
        arrays.append(np.concatenate([getattr(part, name) for part in parts]))
    owners = [part.owners for part in parts if part.owners is not None]
    return Images(*arrays, np.concatenate(owners) if owners else None)
