"""Tests one ensemble over two processes of torch.distributed.

It has the bytes of one process, whatever happens to checkpoints.
"""

import os
import socket
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from project import ENV, ROOT

from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.synthesis.datalens import machines, votes
from pipelines.synthesis.datalens.ensemble import Ensemble, Recipe
from pipelines.synthesis.datalens.workers import assembled

RECIPE = Recipe("mlp", (8, 8, 1), 3, hidden=4, count=40, learning_rate=1e-3, seed=5)  # three blocks
BALLOT = partial(votes.vote, top_k=5, clip=1e-5, stochastic=True)


@pytest.fixture
def shard() -> Images:
    rng = np.random.default_rng(0)
    return Images(
        rng.integers(0, 256, (120, 8, 8, 1)).astype(np.uint8), np.arange(120) % 3, np.arange(120)
    )


@pytest.fixture
def helper(monkeypatch):
    """Starts rank 1 as a process of its own. This process is rank 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [sys.executable, "-m", "pipelines.synthesis.datalens.machines"]
    running = subprocess.Popen(command, cwd=ROOT, env={**ENV, **group, "RANK": "1"})
    for name, value in {**group, "RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    yield running
    running.kill()
    running.wait()


def fakes(step: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(step)
    return rng.random((6, 1, 8, 8), np.float32), np.arange(6) % 3


def test_two_processes_vote_as_one_and_go_on_from_its_checkpoint(helper, shard, tmp_path):
    owner = np.arange(120) % RECIPE.count
    alone = Ensemble(RECIPE, shard, owner, BALLOT)
    sums = [alone.poll(*fakes(step), 2) for step in range(2)]
    alone.save(tmp_path)
    kept = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    sums.append(alone.poll(*fakes(2), 2))
    with assembled(RECIPE, shard, owner, BALLOT) as group:
        assert isinstance(group, machines.Machines)
        assert [group.poll(*fakes(step), 2).tobytes() for step in range(2)] == [
            total.tobytes() for total in sums[:2]
        ]
        (tmp_path / "again").mkdir()
        group.save(tmp_path / "again")
        assert {file.name: file.read_bytes() for file in (tmp_path / "again").iterdir()} == kept
        group.poll(*fakes(7), 1)  # elsewhere, and back
        group.load(tmp_path)
        assert group.poll(*fakes(2), 2).tobytes() == sums[2].tobytes()
        assert len(group.local.blocks) == 2  # and the third is the helper's
    assert helper.wait(timeout=30) == 0


def test_a_machine_that_dies_is_told_in_a_sentence(helper, shard):
    with (
        pytest.raises(UserError, match="ended before its time"),
        assembled(RECIPE, shard, np.arange(120) % RECIPE.count, BALLOT) as group,
    ):
        group.poll(*fakes(0), 1)
        helper.kill()
        helper.wait()
        group.poll(*fakes(1), 1)


def test_alone_by_default():
    assert "WORLD_SIZE" not in os.environ and not machines.several()
