"""The .npz container is faithful to its records."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.datasets import labelled_images
from pipelines.datasets.labelled_images import Images


def test_a_container_comes_back(path, data):
    loaded = labelled_images.load(path)
    for field in ("images", "labels", "ids"):
        original = getattr(data, field)
        np.testing.assert_array_equal(getattr(loaded, field), original)
        assert getattr(loaded, field).dtype == original.dtype


def test_grey_images_may_lack_their_channel_and_ids_default_to_the_position(tmp_path, data):
    np.savez(tmp_path / "a.npz", images=data.images[..., 0], labels=data.labels.astype(np.uint8))
    loaded = labelled_images.load(tmp_path / "a.npz")
    np.testing.assert_array_equal(loaded.images, data.images)
    np.testing.assert_array_equal(loaded.ids, np.arange(12))
    assert loaded.labels.dtype == np.int64


def test_a_container_with_names_differs_by_them_alone(tmp_path, data):
    data.save(tmp_path / "bare.npz")
    data.save(tmp_path / "named.npz", class_names=["a", "b", "c"])
    assert labelled_images.class_names(tmp_path / "bare.npz") is None
    assert labelled_images.class_names(tmp_path / "named.npz") == ["a", "b", "c"]
    np.testing.assert_array_equal(labelled_images.load(tmp_path / "named.npz").images, data.images)
    data.save(tmp_path / "again.npz", class_names=None)
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "bare.npz").read_bytes()


def test_a_full_disk_is_an_os_error(data):
    with pytest.raises(OSError, match="No space left"), open("/dev/full", "wb") as full:
        data.save(full)


def test_indexing_keeps_records_together(data):
    part = data[[3, 1]]
    assert len(part) == 2
    np.testing.assert_array_equal(part.images, data.images[[3, 1]])
    assert part.labels.tolist() == data.labels[[3, 1]].tolist() and part.ids.tolist() == [3, 1]


def test_concatenation_keeps_the_order(data):
    joined = labelled_images.concatenate([data[:5], data[5:]])
    np.testing.assert_array_equal(joined.images, data.images)
    np.testing.assert_array_equal(joined.ids, data.ids)


@settings(deadline=None, max_examples=30)
@given(levels=st.lists(st.integers(0, 255), min_size=4, max_size=4))
def test_pixels_and_synthetic_images_are_inverse(levels):
    images = np.array(levels, np.uint8).reshape(1, 2, 2, 1)
    pixels = Images(images, np.zeros(1, np.int64), np.zeros(1, np.int64)).pixels
    assert pixels.dtype == np.float32 and pixels.min() >= 0 and pixels.max() <= 1
    np.testing.assert_array_equal(labelled_images.synthetic(pixels, np.zeros(1)).images, images)


def test_synthetic_images_are_clipped_and_carry_no_record_s_id():
    made = labelled_images.synthetic(np.array([-0.5, 0.499, 1.7]).reshape(3, 1, 1, 1), np.arange(3))
    assert made.images.ravel().tolist() == [0, 127, 255]
    assert made.ids.tolist() == [-1, -1, -1]
    assert made.labels.dtype == np.int64
