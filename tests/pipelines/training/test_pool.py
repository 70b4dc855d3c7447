"""The pool of released images: how much of it is handed out."""

import numpy as np

from pipelines.datasets.labelled_images import Images
from pipelines.training import pool


def made(labels: list[int], first: int) -> Images:
    pixels = np.zeros((len(labels), 2, 2, 1), np.uint8)
    return Images(pixels, np.array(labels), np.arange(len(labels)) + first)


SETS = {"b": made([0, 1, 1], 100), "a": made([1, 1, 0], 0)}


def test_all_images_are_handed_out_in_the_order_of_names():
    images = pool.released_images(SETS)
    assert images.ids.tolist() == [0, 1, 2, 100, 101, 102]


def test_or_the_first_of_each_class():
    images = pool.released_images(SETS, 2)
    assert images.ids.tolist() == [0, 1, 2, 100]
    assert np.bincount(images.labels).tolist() == [2, 2]


def test_without_sets_there_is_no_pool():
    assert pool.released_pool({}, None) is None
