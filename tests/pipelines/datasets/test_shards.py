"""Tests a client's shard on disk."""

import numpy as np
import pytest
from project import ROOT

from pipelines import config, paths
from pipelines.datasets import shards
from pipelines.datasets.labelled_images import Images, load
from pipelines.datasets.salting import salt
from pipelines.errors import UserError
from pipelines.synthesis.base import Space


@pytest.fixture
def shard(records):
    pool = records(30, Space(4, 4, 1, 3))
    return shards.Shard(train=pool[:20], validation=pool[20:23], test=pool[23:])


def test_shards_come_back_by_client_in_the_order_of_names(tmp_path, monkeypatch, shard):
    monkeypatch.chdir(tmp_path)
    for client in ("c1", "c0"):
        shard.save(paths.shards("digits") / client, dataset="digits", client=client)
    everyone = shards.read_all("digits", ["c1", "c0"])
    assert list(everyone) == ["c0", "c1"]
    for part in shards.PARTS:
        np.testing.assert_array_equal(getattr(everyone["c0"], part).ids, getattr(shard, part).ids)
        np.testing.assert_array_equal(
            shards.read("digits", "c1", part).images, getattr(shard, part).images
        )


@pytest.mark.parametrize("field, value", [("shape", [4, 5, 1]), ("classes", 2)])
def test_a_shard_that_does_not_fit_its_profile_is_one_sentence(
    tmp_path, monkeypatch, shard, field, value
):
    monkeypatch.chdir(tmp_path)
    shard.save(paths.shards("digits") / "c0", dataset="digits", client="c0")
    profile = config.load(ROOT / "params.yaml").profiles["digits"]
    fitting = profile.model_copy(update={"shape": [4, 4, 1], "classes": 3})
    assert len(shards.read("digits", "c0", "train", fitting)) == 20
    with pytest.raises(
        UserError,
        match=r"c0/train\.npz must hold images .* Got 20 images \[4, 4, 1\] of labels 0 to 2",
    ):
        shards.read_all("digits", ["c0"], fitting.model_copy(update={field: value}))


def test_shards_lie_in_the_private_folder():
    assert paths.shards("digits").parts[:2] == ("data", "private")


def test_an_absent_shard_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"c0/train\.npz is missing"):
        shards.read("digits", "c0", "train")


def test_a_private_file_tells_neither_its_records_hash_nor_their_number(tmp_path, monkeypatch):
    """`dvc.lock` holds hash and size: both must say nothing about the records to someone who can guess them."""
    monkeypatch.chdir(tmp_path)

    def saved(count, name, **salted):
        pixels = np.zeros((count, 8, 8, 1), np.uint8)
        Images(pixels, np.zeros(count, np.int64), np.arange(count)).save(tmp_path / name, **salted)
        return (tmp_path / name).read_bytes()

    few, many = (
        saved(count, f"{count}.npz", salt=salt("digits", "c0", "train")) for count in (40, 300)
    )
    assert len(few) == len(many) == 1 << 16
    assert saved(40, "again.npz", salt=salt("digits", "c0", "train")) == few  # stable over re-runs
    assert (
        saved(40, "other.npz", salt=salt("digits", "c1", "train")) != few
    )  # and each client's own
    assert saved(40, "part.npz", salt=salt("digits", "c0", "test")) != few
    assert len(saved(2000, "large.npz", salt=salt("digits", "c0", "train"))).bit_count() == 1
    assert len(load(tmp_path / "40.npz")) == 40
