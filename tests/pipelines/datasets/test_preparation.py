"""Tests that what is read and dealt in memory is what the stages write."""

import contextlib

import numpy as np
import pytest

from pipelines import config, paths, releases
from pipelines.datasets import dealing, labelled_images, preparation, shards
from stages import partition, prepare

pytestmark = pytest.mark.pipeline


def test_the_stages_write_what_is_read_and_dealt(checkout):
    with contextlib.chdir(checkout.path):
        params = config.load()
        prepared = preparation.prepared(params, "own")
        dealt = dealing.dealt(params, "own", prepared.pool)
        assert not paths.prepared("own").exists()
        prepare.run(params, "own")
        partition.run(params, "own")
        for part in ("pool", "test", "public"):
            written = labelled_images.load(paths.prepared("own") / f"{part}.npz")
            assert releases.digest(written) == releases.digest(getattr(prepared, part))
        for client, shard in shards.read_all("own", list(params.clients)).items():
            assert releases.digest(shard.train) == releases.digest(dealt[client].train)


def test_no_record_is_in_two_parts(checkout):
    with contextlib.chdir(checkout.path):
        params = config.load()
        prepared = preparation.prepared(params, "own")
    parts = [prepared.pool.ids, prepared.test.ids, prepared.public.ids]
    assert sorted(np.concatenate(parts)) == sorted(prepared.read.ids)
