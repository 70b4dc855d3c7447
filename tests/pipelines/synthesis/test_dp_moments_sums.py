"""Tests the two sums that `dp_moments` releases: sensitivity by brute force, and their definition.

The definition is moment_generators.md, Part I.
"""

import itertools
import math

import numpy as np
import pytest

from pipelines.datasets.labelled_images import Images
from pipelines.synthesis import dp_moments_sums
from pipelines.synthesis.base import Space

SCALE = 2**20


def adversarial(space: Space) -> np.ndarray:
    """Returns black, white, one bright pixel, one dark pixel, a checkerboard, half and half: uint8
    [6, H, W, C].
    """
    black = np.zeros(space.shape, np.uint8)
    bright, half = black.copy(), black.copy()
    bright[0, 0, 0] = 255
    half[: space.height // 2] = 255
    board = (np.indices(space.shape).sum(0) % 2 * 255).astype(np.uint8)
    return np.stack([black, 255 - black, bright, 255 - bright, board, half])


def moved_by_each_record(total_of, data: Images) -> np.ndarray:
    """Returns the L2 distance in units by which removing (equally: adding) each single record moves
    `total_of(data)`.
    """
    rest = [np.delete(np.arange(len(data)), record) for record in range(len(data))]
    return np.array(
        [np.linalg.norm((total_of(data) - total_of(data[keep])) / SCALE) for keep in rest]
    )


@pytest.fixture
def crowd(space, records):
    """Returns ordinary and adversarial records of every class."""
    images = np.concatenate([records(6, space).images, *[adversarial(space)] * space.classes])
    labels = np.concatenate([np.arange(6) % space.classes, np.repeat(np.arange(space.classes), 6)])
    return Images(images, labels.astype(np.int64), np.arange(len(labels)))


@pytest.mark.parametrize("clip", [0.5, 2.0, 100.0])
@pytest.mark.parametrize("count_weight", [0.2, 0.5, 3.0])
def test_no_record_moves_the_first_release_by_more_than_one(
    space, crowd, moments_settings, clip, count_weight
):
    block = moments_settings(clip=clip, count_weight=count_weight)

    def total(data):
        return dp_moments_sums.first_sum(
            dp_moments_sums.encode(data.pixels, block, space), data.labels, block, space, SCALE
        )

    moved = moved_by_each_record(total, crowd)
    assert moved.max() <= 1
    if (
        clip < 100
    ):  # some record is clipped and reaches the bound: the noise is not needlessly large
        assert moved.max() > 0.999


@pytest.mark.parametrize("residual_clip", [0.3, 1.5])
@pytest.mark.parametrize("means_size", [0.0, 1.0, 50.0])
def test_no_record_moves_the_second_release_by_more_than_one(
    space, crowd, moments_settings, residual_clip, means_size
):
    """This holds around any means at all, because the first release's noise can put them anywhere."""
    block = moments_settings(residual_clip=residual_clip, clip=100.0)
    p = dp_moments_sums.encode(crowd.pixels[:1], block, space).shape[1]
    means = np.random.default_rng(1).normal(0, means_size, (space.classes, p))

    def total(data):
        return dp_moments_sums.second_sum(
            dp_moments_sums.encode(data.pixels, block, space), data.labels, means, block, SCALE
        )

    moved = moved_by_each_record(total, crowd)
    assert moved.max() <= 1
    assert moved.max() > 0.999


def test_relabelling_moves_each_release_by_at_most_two(space, crowd, moments_settings):
    block = moments_settings()
    other = Images(crowd.images, (crowd.labels + 1) % space.classes, crowd.ids)
    for record, total in itertools.product(range(6), (first_total, second_total)):
        labels = np.where(np.arange(len(crowd)) == record, other.labels, crowd.labels)
        neighbour = Images(crowd.images, labels, crowd.ids)
        assert (
            np.linalg.norm((total(crowd, block, space) - total(neighbour, block, space)) / SCALE)
            <= 2
        )


def first_total(data, block, space):
    return dp_moments_sums.first_sum(
        dp_moments_sums.encode(data.pixels, block, space), data.labels, block, space, SCALE
    )


def second_total(data, block, space):
    u = dp_moments_sums.encode(data.pixels, block, space)
    return dp_moments_sums.second_sum(
        u, data.labels, np.zeros((space.classes, u.shape[1])), block, SCALE
    )


def test_releases_are_the_sums_of_their_definition(crowd, space, moments_settings):
    """The oracle sums record by record, with the full matrix instead of its weighted triangle."""
    block = moments_settings()
    u = dp_moments_sums.encode(crowd.pixels, block, space)
    means = np.random.default_rng(0).normal(0, 0.5, (space.classes, u.shape[1]))
    w0, w1 = 1 / math.sqrt(1.25), 0.5 / math.sqrt(1.25)
    first = np.zeros((space.classes, u.shape[1] + 1))
    second = np.zeros((space.classes, u.shape[1], u.shape[1]))
    for row, label in zip(u, crowd.labels):
        first[label] += [*(w0 * row / block.clip), w1]
        v = row - means[label]
        v = v * min(1, block.residual_clip / np.linalg.norm(v)) / block.residual_clip
        second[label] += np.outer(v, v)
    got = dp_moments_sums.first_sum(u, crowd.labels, block, space, SCALE) / SCALE
    np.testing.assert_allclose(got, first, atol=len(crowd) / SCALE)
    triangles = dp_moments_sums.second_sum(u, crowd.labels, means, block, SCALE) / SCALE
    matrices = np.stack([dp_moments_sums.symmetric(row) for row in triangles])
    np.testing.assert_allclose(matrices, second, atol=len(crowd) / SCALE)


def test_chunks_do_not_change_the_second_sum(records, small_space, moments_settings):
    block = moments_settings()
    data = records(1203, small_space)
    u = dp_moments_sums.encode(data.pixels, block, small_space)
    means = np.zeros((small_space.classes, u.shape[1]))
    one_by_one = sum(
        dp_moments_sums.second_sum(u[i : i + 1], data.labels[i : i + 1], means, block, SCALE)
        for i in range(len(u))
    )
    np.testing.assert_array_equal(
        dp_moments_sums.second_sum(u, data.labels, means, block, SCALE), one_by_one
    )
