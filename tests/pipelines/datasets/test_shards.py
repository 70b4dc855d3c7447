"""A client's shard on disk."""

import numpy as np
import pytest

from pipelines import paths
from pipelines.datasets import shards
from pipelines.errors import UserError
from pipelines.synthesis.registry import Space


@pytest.fixture
def shard(records):
    pool = records(30, Space(4, 4, 1, 3))
    return shards.Shard(train=pool[:20], validation=pool[20:23], test=pool[23:])


def test_shards_come_back_by_client_in_the_order_of_names(tmp_path, monkeypatch, shard):
    monkeypatch.chdir(tmp_path)
    for client in ("c1", "c0"):
        shard.save(paths.shards("digits") / client)
    everyone = shards.read_all("digits", ["c1", "c0"])
    assert list(everyone) == ["c0", "c1"]
    for part in shards.PARTS:
        np.testing.assert_array_equal(getattr(everyone["c0"], part).ids, getattr(shard, part).ids)
        np.testing.assert_array_equal(shards.read("digits", "c1", part).images, getattr(shard, part).images)


def test_shards_lie_in_the_private_folder():
    assert paths.shards("digits").parts[:2] == ("data", "private")


def test_an_absent_shard_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"c0/train\.npz is missing"):
        shards.read("digits", "c0", "train")
