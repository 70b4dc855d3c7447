"""Any damage to an .npz container, and any array of another kind, is one sentence."""

import os

import numpy as np
import pytest

from pipelines.datasets import labelled_images
from pipelines.errors import UserError


def test_a_truncated_file_is_one_sentence_wherever_it_ends(path):
    raw = path.read_bytes()
    for end in range(0, len(raw), 11):
        path.write_bytes(raw[:end])
        with pytest.raises(UserError, match="corrupt or truncated") as error:
            labelled_images.load(path)
        assert "\n" not in str(error.value)


def test_a_flipped_bit_is_one_sentence_or_harmless(path, data):
    """Every second byte in turn: zip, deflate and numpy each notice damage with errors of their own."""
    raw = path.read_bytes()
    refused = 0
    for position in range(0, len(raw), 2):
        damaged = bytearray(raw)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        try:
            loaded = labelled_images.load(path)
        except UserError as error:
            refused += "\n" not in str(error)
        else:
            np.testing.assert_array_equal(loaded.images, data.images)
    assert refused > len(raw) / 4


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04"])
def test_a_file_of_another_kind_is_one_sentence(path, content):
    path.write_bytes(content)
    with pytest.raises(UserError, match="corrupt or truncated"):
        labelled_images.load(path)


def test_a_single_array_is_no_container(path):
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(UserError, match=r"not a readable \.npz"):
        labelled_images.load(path)


def test_pickled_objects_are_never_loaded(path):
    np.savez(path, images=np.array([{"a": 1}], dtype=object), labels=np.zeros(1, np.int64))
    with pytest.raises(
        UserError, match=r"'images' of .* holds Python objects, which are never loaded"
    ):
        labelled_images.load(path)


def test_an_absent_file_says_so(tmp_path):
    with pytest.raises(UserError, match="is missing"):
        labelled_images.load(tmp_path / "a.npz")


IMAGES, LABELS = np.zeros((4, 8, 8, 1), np.uint8), np.zeros(4, np.int64)


@pytest.mark.parametrize(
    "content, said",
    [
        ({"images": IMAGES}, "must hold 'images' and 'labels'"),
        ({"x": IMAGES, "y": LABELS}, "must hold 'images' and 'labels'"),
        ({"images": IMAGES.astype(float), "labels": LABELS}, "'images' .* must be uint8"),
        ({"images": IMAGES.reshape(4, 64), "labels": LABELS}, "'images' .* must be uint8"),
        ({"images": IMAGES, "labels": LABELS[:3]}, "'labels' .* one per image"),
        ({"images": IMAGES, "labels": LABELS.astype(float)}, "'labels' .* must be ints"),
        ({"images": IMAGES, "labels": LABELS[:, None]}, "'labels' .* must be ints"),
        ({"images": IMAGES, "labels": LABELS, "ids": np.arange(3)}, "'ids' .* one per image"),
        ({"images": IMAGES, "labels": LABELS, "ids": np.arange(4.0)}, "'ids' .* must be ints"),
    ],
)
def test_wrong_contents_are_one_sentence(path, content, said):
    np.savez(path, **content)
    with pytest.raises(UserError, match=said) as error:
        labelled_images.load(path)
    assert "Got" in str(error.value) and "\n" not in str(error.value)


FLOATS = np.full((4, 8, 8, 1), 0.5, np.float32)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"images": FLOATS}, "Convert: images = np.rint(images * 255.0).astype(np.uint8)."),
        ({"images": FLOATS > 0}, "Convert: images = np.rint(images * 255.0).astype(np.uint8)."),
        ({"images": FLOATS * 300}, "Convert: images = images.astype(np.uint8)."),
        (
            {"images": FLOATS - 3},
            "Convert: bring the pixels into [0, 255], then images = np.rint(images)",
        ),
        ({"images": FLOATS * np.nan}, "Convert: bring the pixels into [0, 255], then"),
        (
            {"images": IMAGES.astype(np.uint16) + 999},
            "Convert: images = (images >> 8).astype(np.uint8).",
        ),
        ({"images": IMAGES.astype(np.int64)}, "Convert: images = images.astype(np.uint8)."),
        (
            {"images": IMAGES.reshape(4, 64)},
            "Convert: images = images.reshape(len(images), 8, 8, 1).",
        ),
        (
            {"images": np.zeros((4, 15), np.uint8)},
            "images.reshape(len(images), height, width, channels).",
        ),
        (
            {"images": np.zeros((4, 3, 8, 8))},
            "Convert: images = np.moveaxis(images, 1, -1); images = np.rint(images * 255.0).astype(np.uint8).",
        ),
        ({"images": np.zeros(4, np.uint8)}, "Got uint8 (4,) instead."),
        ({"images": np.uint8(4)}, "Got uint8 () instead."),
        ({"labels": LABELS[:3]}, "Got 3 labels for 4 images instead."),
        (
            {"labels": LABELS.astype(str)},
            "class_names, labels = np.unique(labels.astype(str), return_inverse=True)",
        ),
        (
            {"labels": LABELS.astype(bytes)},
            "class_names, labels = np.unique(labels.astype(str), return_inverse=True)",
        ),
        ({"labels": LABELS.astype(float)}, "Convert: labels = labels.astype(np.int64)."),
        ({"labels": LABELS[:, None]}, "Convert: labels = labels.ravel().astype(np.int64)."),
        (
            {"labels": np.eye(4)},
            "Convert, where each row marks its class: labels = labels.argmax(1).",
        ),
        ({"labels": np.int64(3)}, "Got int64 () instead."),
        (
            {"labels": LABELS.astype(object)},
            "'labels' of {} holds Python objects, which are never loaded. Save ints: ",
        ),
        (
            {"images": np.array([None] * 4)},
            "images of several sizes go into folders (source: folder).",
        ),
        ({"ids": np.arange(3)}, "Got 3 ids for 4 images instead."),
        (
            {"labels": np.full(4, 2**64 - 1, np.uint64)},
            "must be below 2**63. Got 18446744073709551615 instead.",
        ),
        (
            {"ids": np.full(4, 2**63, np.uint64)},
            "'ids' of {} must be below 2**63. Got 9223372036854775808 instead.",
        ),
    ],
)
def test_what_a_user_can_convert_says_how(path, change, said):
    np.savez(path, **{"images": IMAGES, "labels": LABELS, **change})
    with pytest.raises(UserError) as error:
        labelled_images.load(path)
    assert said.format(path) in str(error.value) and "\n" not in str(error.value)


def test_the_conversions_that_are_told_do_what_they_say(path):
    """Each line is run as it stands."""
    names = np.array(["b", "a", "b", "c"])
    given = {"images": np.full((4, 3, 8, 9), 0.2), "labels": names}
    for _ in range(2):
        np.savez(path, **given)
        with pytest.raises(UserError) as error:
            labelled_images.load(path)
        lines = (
            str(error.value)
            .partition("Convert: ")[2]
            .removesuffix(".")
            .removesuffix(", and save class_names, too")
        )
        space = {"np": np, **given}
        exec(lines, space)
        given = {name: space[name] for name in ("images", "labels", "class_names") if name in space}
    np.savez(path, **given)
    loaded = labelled_images.load(path)
    assert loaded.images.shape == (4, 8, 9, 3) and set(loaded.images.ravel()) == {51}
    assert loaded.labels.tolist() == [1, 0, 1, 2] and labelled_images.class_names(path) == [
        "a",
        "b",
        "c",
    ]


def test_keys_of_other_names_are_told_with_the_line_that_saves_them(path):
    np.savez(path, X=IMAGES, y=LABELS, z=np.array([None]))
    with pytest.raises(UserError) as error:
        labelled_images.load(path)
    assert "Got ['X', 'y', 'z'] instead." in str(error.value)
    assert f"np.savez('{path}', images=images, labels=labels)" in str(error.value)


def test_an_array_that_nobody_reads_does_no_harm(path, data):
    np.savez(path, images=data.images, labels=data.labels, notes=np.array([{"a": 1}], dtype=object))
    assert len(labelled_images.load(path)) == len(data)
    assert labelled_images.class_names(path) is None


@pytest.mark.parametrize(
    "names", [np.arange(3), np.array([["a"]]), np.array("a"), np.array(["a"], object)]
)
def test_class_names_that_are_no_strings_are_one_sentence(path, names):
    np.savez(path, images=IMAGES, labels=LABELS, class_names=names)
    with pytest.raises(UserError, match="'class_names' of "):
        labelled_images.class_names(path)


def test_a_pipe_or_a_folder_in_the_place_of_the_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.npz")
    (tmp_path / "b.npz").mkdir()
    for name in "ab":
        with pytest.raises(UserError, match=rf"{name}\.npz is no file\."):
            labelled_images.load(tmp_path / f"{name}.npz")
