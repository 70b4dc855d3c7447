"""The .npz container: faithful, and any damage to the file is one sentence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.datasets import containers
from pipelines.datasets.containers import Images
from pipelines.errors import UserError
from pipelines.synthesis.registry import Space


@pytest.fixture
def data(records):
    return records(12, Space(8, 8, 1, 3))


@pytest.fixture
def path(tmp_path, data):
    data.save(tmp_path / "a.npz")
    return tmp_path / "a.npz"


def test_a_container_comes_back(path, data):
    loaded = containers.load(path)
    for field in ("images", "labels", "ids"):
        original = getattr(data, field)
        np.testing.assert_array_equal(getattr(loaded, field), original)
        assert getattr(loaded, field).dtype == original.dtype


def test_grey_images_may_lack_their_channel_and_ids_default_to_the_position(tmp_path, data):
    np.savez(tmp_path / "a.npz", images=data.images[..., 0], labels=data.labels.astype(np.uint8))
    loaded = containers.load(tmp_path / "a.npz")
    np.testing.assert_array_equal(loaded.images, data.images)
    np.testing.assert_array_equal(loaded.ids, np.arange(12))
    assert loaded.labels.dtype == np.int64


def test_a_truncated_file_is_one_sentence_wherever_it_ends(path):
    raw = path.read_bytes()
    for end in range(0, len(raw), 11):
        path.write_bytes(raw[:end])
        with pytest.raises(UserError, match="corrupt or truncated") as error:
            containers.load(path)
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
            loaded = containers.load(path)
        except UserError as error:
            refused += "\n" not in str(error)
        else:
            np.testing.assert_array_equal(loaded.images, data.images)
    assert refused > len(raw) / 4


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04"])
def test_a_file_of_another_kind_is_one_sentence(path, content):
    path.write_bytes(content)
    with pytest.raises(UserError, match="corrupt or truncated"):
        containers.load(path)


def test_a_single_array_is_no_container(path):
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(UserError, match=r"not a readable \.npz"):
        containers.load(path)


def test_pickled_objects_are_never_loaded(path):
    np.savez(path, images=np.array([{"a": 1}], dtype=object), labels=np.zeros(1, np.int64))
    with pytest.raises(UserError, match="corrupt or truncated"):
        containers.load(path)


def test_an_absent_file_says_so(tmp_path):
    with pytest.raises(UserError, match="is missing"):
        containers.load(tmp_path / "a.npz")


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
        containers.load(path)
    assert "Got" in str(error.value) and "\n" not in str(error.value)


def test_a_full_disk_is_an_os_error(data):
    with pytest.raises(OSError, match="No space left"), open("/dev/full", "wb") as full:
        data.save(full)


def test_indexing_keeps_records_together(data):
    part = data[[3, 1]]
    assert len(part) == 2
    np.testing.assert_array_equal(part.images, data.images[[3, 1]])
    assert part.labels.tolist() == data.labels[[3, 1]].tolist() and part.ids.tolist() == [3, 1]


def test_concatenation_keeps_the_order(data):
    joined = containers.concatenate([data[:5], data[5:]])
    np.testing.assert_array_equal(joined.images, data.images)
    np.testing.assert_array_equal(joined.ids, data.ids)


@settings(deadline=None, max_examples=30)
@given(levels=st.lists(st.integers(0, 255), min_size=4, max_size=4))
def test_pixels_and_synthetic_images_are_inverse(levels):
    images = np.array(levels, np.uint8).reshape(1, 2, 2, 1)
    pixels = Images(images, np.zeros(1, np.int64), np.zeros(1, np.int64)).pixels
    assert pixels.dtype == np.float32 and pixels.min() >= 0 and pixels.max() <= 1
    np.testing.assert_array_equal(containers.synthetic(pixels, np.zeros(1)).images, images)


def test_synthetic_images_are_clipped_and_carry_no_record_s_id():
    made = containers.synthetic(np.array([-0.5, 0.499, 1.7]).reshape(3, 1, 1, 1), np.arange(3))
    assert made.images.ravel().tolist() == [0, 127, 255]
    assert made.ids.tolist() == [-1, -1, -1]
    assert made.labels.dtype == np.int64
