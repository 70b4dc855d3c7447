"""A warped copy is a function of its record's pixels and the copy's number: to the last bit."""

import numpy as np
import pytest
import torch

from pipelines.config.data import Augmentation
from pipelines.datasets.labelled_images import Images
from pipelines.training import record_warps
from pipelines.training.augmentation import warp_by
from pipelines.training.record_warps import BATCH, warped

WARPS = Augmentation(rotation=0.2, scale=0.12, shear=0.2, shift=2.5, elastic=1.0, noise=0.0)


def records(count: int) -> Images:
    rng = np.random.default_rng(count)
    pixels = rng.integers(0, 256, (count, 12, 12, 1)).astype(np.uint8)
    return Images(pixels, rng.integers(0, 10, count), rng.permutation(10 * count)[:count])


def test_order_and_company_change_no_pixel():
    data = records(BATCH + 40)
    whole = warped(data, WARPS, 1)
    chosen = np.random.default_rng(0).permutation(len(data))[:30]
    np.testing.assert_array_equal(warped(data[chosen], WARPS, 1).images, whole.images[chosen])


def test_copies_of_one_record_differ():
    data = records(1)
    assert not np.array_equal(warped(data, WARPS, 1).images, warped(data, WARPS, 2).images)


def test_records_of_other_pixels_have_other_warps():
    first, second = (record_warps._draws(records(1 + n).images[:1], 1)[0] for n in range(2))
    assert not torch.equal(first, second)


def test_ids_that_shift_change_no_pixel():
    """Where ids are positions, a record that goes renames all behind it (docs/privacy.md)."""
    data = records(5)
    renamed = Images(data.images, data.labels, data.ids + 1)
    np.testing.assert_array_equal(warped(renamed, WARPS, 1).images, warped(data, WARPS, 1).images)


def test_labels_and_ids_stay():
    data = records(7)
    copy = warped(data, WARPS, 3)
    np.testing.assert_array_equal(copy.labels, data.labels)
    np.testing.assert_array_equal(copy.ids, data.ids)
    assert copy.images.dtype == np.uint8 and copy.images.shape == data.images.shape


def test_an_image_is_warped_as_its_draws_say():
    data = records(1)
    affine, coarse = record_warps._draws(data.images, 1)
    assert ((affine >= 0) & (affine < 1)).all()
    pixels = torch.from_numpy(data.images).permute(0, 3, 1, 2).float() / 255
    expected = warp_by(pixels, WARPS, affine[:1], coarse[:1])
    found = torch.from_numpy(warped(data, WARPS, 1).images).permute(0, 3, 1, 2).float() / 255
    torch.testing.assert_close(found, expected, atol=0.01, rtol=0)


@pytest.mark.parametrize("count", [0, 1, BATCH])
def test_any_number_of_records(count):
    assert len(warped(records(count), WARPS, 1)) == count
