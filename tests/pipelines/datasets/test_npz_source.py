"""Tests the user's own .npz: a test part of its own, and who owns a record."""

import numpy as np
import pytest

from pipelines.datasets import sources
from pipelines.errors import UserError


def arrays(count: int, first: int = 0, labels=None, channels: int = 0) -> dict[str, np.ndarray]:
    """Returns images whose pixels say which record they are."""
    shape = (count, 4, 5, channels) if channels else (count, 4, 5)
    images = np.zeros(shape, np.uint8)
    images[:] = np.arange(first, first + count).reshape(-1, *[1] * (len(shape) - 1))
    labels = np.arange(count) % 3 if labels is None else np.asarray(labels)
    return {"images": images, "labels": labels}


def named(part: str, content: dict) -> dict:
    return {f"{part}{name}": array for name, array in content.items()}


def read(folder, **content):
    np.savez(folder / "own.npz", **content)
    return sources.read("own", name="npz", classes=3, shape=[4, 5, 1], root=folder)


def rows(data) -> list[int]:
    return data.images[:, 0, 0, 0].tolist()


def test_test_images_are_the_global_test_set_and_no_record(tmp_path):
    records, test = read(tmp_path, **arrays(7), **named("test_", arrays(4, first=7)))
    assert rows(records) == list(range(7)) and rows(test) == [7, 8, 9, 10]
    assert records.ids.tolist() == list(range(7)) and test.ids.tolist() == [7, 8, 9, 10]
    assert test.labels.tolist() == [0, 1, 2, 0] and records.owners is None


def test_medmnist_s_train_and_val_are_the_records(tmp_path):
    content = {}
    for part, count, first in (("train_", 6, 0), ("val_", 3, 6), ("test_", 5, 9)):
        one_part = arrays(count, first)
        # as MedMNIST has them
        one_part["labels"] = one_part["labels"].astype(np.uint8)[:, None]
        content |= named(part, one_part)
    records, test = read(tmp_path, **content)
    assert rows(records) == list(range(9)) and rows(test) == [9, 10, 11, 12, 13]
    assert records.labels.tolist() == [0, 1, 2] * 3 and records.labels.dtype == np.int64
    ids = np.concatenate([records.ids, test.ids])
    assert ids.tolist() == list(range(14))


def test_train_alone_has_no_test_part(tmp_path):
    records, test = read(tmp_path, **named("train_", arrays(6)))
    assert rows(records) == list(range(6)) and test is None


def test_ids_and_owners_of_all_parts_stay_with_their_records(tmp_path):
    train = {**arrays(3), "ids": [30, 31, 32], "clients": ["x", "y", "x"]}
    val = {**arrays(2, 3), "ids": [7, 8], "clients": ["z", "longer than x"]}
    test = {**arrays(3, 5), "ids": [1, 2, 3]}
    records, held = read(
        tmp_path, **named("train_", train), **named("val_", val), **named("test_", test)
    )
    assert records.ids.tolist() == [30, 31, 32, 7, 8] and held.ids.tolist() == [1, 2, 3]
    assert records.owners.tolist() == ["x", "y", "x", "z", "longer than x"]


@pytest.mark.parametrize("clients", [["1", "2", "10"], np.array([1, 2, 10], np.int16)])
def test_owners_are_strings_or_ints(tmp_path, clients):
    records, _ = read(tmp_path, **arrays(3), clients=clients)
    assert records.owners.tolist() == ["1", "2", "10"]


OWNERS = {
    "too few": (["a", "b"], r"Got 2 for 3 images instead"),
    "too many": (["a"] * 4, r"Got 4 for 3 images instead"),
    "floats": ([1.0, 2.0, np.nan], r"strings or ints \[n\].* Got float64 \(3,\) instead"),
    "a column": ([["a"], ["b"], ["c"]], r"Got <U1 \(3, 1\) instead"),
    "a record without one": (["a", " ", "b"], r"Got 1 without one, the first at position 1\."),
    "objects": (np.array(["a", None, "b"], object), r"Save strings: clients = clients\.astype"),
}


@pytest.mark.parametrize("case", OWNERS)
def test_owners_of_another_kind_are_refused(tmp_path, case):
    clients, said = OWNERS[case]
    with pytest.raises(UserError, match=said) as error:
        read(tmp_path, **arrays(3), clients=clients)
    assert "'clients' of" in str(error.value)


PARTS = {
    "records twice": (
        {**arrays(3), **named("train_", arrays(3))},
        r"either as 'images' and 'labels' or as 'train_images'",
    ),
    "val alone": (named("val_", arrays(3)), r"must hold 'train_images' beside 'val_images'"),
    "test alone": (named("test_", arrays(3)), r"must hold 'images' and 'labels'"),
    "test without labels": (
        {**arrays(3), "test_images": arrays(3)["images"]},
        r"must hold 'test_images' and 'test_labels'",
    ),
    "an empty test part": (
        {**arrays(3), **named("test_", arrays(0))},
        r"'test_images' of .* must hold at least one image",
    ),
    "more labels than images": (
        {**arrays(3), **named("test_", {**arrays(3), "labels": [0, 1]})},
        r"'test_labels' of .* Got 2 labels for 3 images",
    ),
    "a table of labels": (
        named("train_", {**arrays(3), "labels": np.zeros((3, 14), int)}),
        r"'train_labels' of .* Got int64 \(3, 14\) instead",
    ),
    "val of another shape": (
        {**named("train_", arrays(3)), **named("val_", arrays(3, channels=3))},
        r"'val_images' of .* shape of 'train_images', \[4, 5, 1\]\. Got \[4, 5, 3\]",
    ),
    "ids of the records alone": (
        {**arrays(3), "ids": [0, 1, 2], **named("test_", arrays(3))},
        r"'ids' for every part of its images or for none\. It lacks 'test_ids'\.",
    ),
    "owners of one part alone": (
        {**named("train_", {**arrays(3), "clients": list("abc")}), **named("val_", arrays(2))},
        r"It lacks 'val_clients'\.",
    ),
    "an id in two parts": (
        {**arrays(3), "ids": [0, 1, 2], **named("test_", {**arrays(3), "ids": [5, 6, 2]})},
        r"ids of own must name one record each\. Got 2 twice",
    ),
    "a label outside in the test part": (
        {**arrays(3), **named("test_", {**arrays(3), "labels": [0, 1, 3]})},
        r"labels of own must be in \[0, 2\]\. Got 0 to 3",
    ),
    "objects in the test part": (
        {**arrays(3), **named("test_", {**arrays(1), "labels": np.array([None], object)})},
        r"'test_labels' of .* never loaded\. Save ints",
    ),
}


@pytest.mark.parametrize("case", PARTS)
def test_parts_that_do_not_fit_together_are_refused(tmp_path, case):
    content, said = PARTS[case]
    with pytest.raises(UserError, match=said):
        read(tmp_path, **content)
