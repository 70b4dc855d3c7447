"""Tests what the partition stage prints: a line per client, and one line for many."""

import numpy as np

from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard
from stages import partition


def shard(count: int) -> Shard:
    labels = np.arange(count) % 3
    records = Images(np.zeros((count, 2, 2, 1), np.uint8), labels, np.arange(count))
    return Shard(records, records[:2], records[:4])


def test_a_few_clients_are_listed():
    assert partition.lines("digits", {"a": shard(9), "b": shard(1)}) == [
        "digits/a: 9 train, 2 validation, 4 test; 3 classes in train",
        "digits/b: 1 train, 1 validation, 1 test; 1 classes in train",
    ]


def test_of_many_the_smallest_and_the_largest_are_named():
    cut = {f"c{number}": shard(5 + number) for number in range(50)}
    (line,) = partition.lines("digits", cut)
    assert line.startswith("digits: 50 clients, from c0 to c49: 5 train, ")
    assert " to 54 train, " in line
