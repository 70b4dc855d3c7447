"""Tests that the number of processes changes no byte.

A process that ends gives a sentence, and none outlives its parent.
"""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from planted import failing

from pipelines.errors import UserError
from pipelines.synthesis.base import Space
from pipelines.synthesis.datalens import ensemble, votes, workers
from pipelines.synthesis.datalens.ensemble import Ensemble, Recipe

SPACE = Space(height=6, width=5, channels=1, classes=3)
RECIPE = Recipe(
    "compact", SPACE.shape, SPACE.classes, hidden=8, count=50, learning_rate=1e-2, seed=5
)  # 4 blocks
BALLOT = partial(votes.vote, top_k=6, clip=1e-5, stochastic=True)


@pytest.fixture
def question(records):
    data = records(120, SPACE)
    return data, votes.assign(data.ids, RECIPE.count, key=b"key")


def fakes(step: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(step)
    return rng.random((4, 1, 6, 5), np.float32), rng.integers(0, 3, 4)


def asked(teachers, steps=(0, 1, 2)) -> bytes:
    return b"".join(teachers.poll(*fakes(step), 2).tobytes() for step in steps)


@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_votes_do_not_depend_on_the_number_of_processes(monkeypatch, question, count):
    alone = asked(Ensemble(RECIPE, *question, BALLOT))
    monkeypatch.setenv("FEDLENS_WORKERS", str(count))
    with workers.assembled(RECIPE, *question, BALLOT) as crew:
        assert len(crew.processes) == count
        assert asked(crew) == alone


def test_votes_of_all_blocks_add_up_to_those_of_all_teachers(question):
    whole = Ensemble(RECIPE, *question, BALLOT)
    parts = [
        Ensemble(RECIPE, *question, BALLOT, numbers=range(number, number + 1))
        for number in RECIPE.blocks
    ]
    assert [block.count for block in whole.blocks.values()] == [16, 16, 16, 2]
    for step in range(2):
        total = whole.poll(*fakes(step), 1)
        np.testing.assert_array_equal(total, sum(part.poll(*fakes(step), 1) for part in parts))
        assert total.dtype == np.int64 and np.abs(total).max() <= RECIPE.count


def test_each_record_lies_with_its_own_teacher_in_one_block(question):
    data, owner = question
    seen = []
    for number, block in Ensemble(RECIPE, *question, BALLOT).blocks.items():
        for teacher in range(block.count):
            rows = block.table[teacher, : block.sizes[teacher]]
            pixels = block.images[rows].permute(0, 2, 3, 1).numpy()
            np.testing.assert_array_equal(
                pixels, data.images[owner == number * RECIPE.size + teacher]
            )
            seen.append(len(rows))
    assert sum(seen) == len(data) and len(seen) == RECIPE.count


def test_a_saved_ensemble_goes_on_as_if_nothing_had_happened(monkeypatch, question, tmp_path):
    """This also holds with another number of processes."""
    whole = Ensemble(RECIPE, *question, BALLOT)
    asked(whole, range(2))
    whole.save(tmp_path)
    expected = asked(whole, range(2, 4))
    fresh = Ensemble(RECIPE, *question, BALLOT)
    fresh.load(tmp_path)
    assert asked(fresh, range(2, 4)) == expected
    monkeypatch.setenv("FEDLENS_WORKERS", "2")
    with workers.assembled(RECIPE, *question, BALLOT) as crew:
        crew.load(tmp_path)
        assert asked(crew, range(2, 4)) == expected


def test_few_teachers_stay_in_this_process_and_a_gpu_needs_one(monkeypatch, question):
    monkeypatch.delenv("FEDLENS_WORKERS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert workers.wanted(RECIPE) == 1
    large = replace(RECIPE, shape=(28, 28, 1), count=4000)
    assert workers.wanted(large) == 6
    assert workers.wanted(replace(large, device="cuda")) == 1
    monkeypatch.setenv("FEDLENS_WORKERS", "99")
    assert workers.wanted(RECIPE) == 4  # one block each
    assert set(ensemble.SIZES) == {"cpu", "cuda"}


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", ""])
def test_a_wrong_number_of_workers_is_one_sentence(monkeypatch, value):
    monkeypatch.setenv("FEDLENS_WORKERS", value)
    with pytest.raises(UserError, match=r"FEDLENS_WORKERS must be auto or a positive int\. Got"):
        workers.wanted(RECIPE)


@pytest.mark.slow
def test_a_worker_that_dies_or_fails_is_reported_and_the_rest_end(monkeypatch, question):
    monkeypatch.setenv("FEDLENS_WORKERS", "2")
    with (
        pytest.raises(UserError, match="ended before its time"),
        workers.assembled(RECIPE, *question, BALLOT) as crew,
    ):
        os.kill(crew.processes[1].pid, signal.SIGKILL)
        asked(crew)
    assert not any(process.is_alive() for process in crew.processes)
    with (
        pytest.raises(RuntimeError, match=r"(?s)in teachers-0.*ZeroDivisionError: planted"),
        workers.assembled(RECIPE, *question, failing) as crew,
    ):
        asked(crew)
    assert not any(process.is_alive() for process in crew.processes)


PARENT = """
import os, sys, time
from pipelines.synthesis.datalens import workers
if __name__ == "__main__":
    crew = workers.Workers(2)
    print(*(process.pid for process in crew.processes), flush=True)
    time.sleep(600)
"""


def running(pid: int) -> bool:
    """Returns whether a process runs. A zombie that nobody has waited for yet does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    parent = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment
    )
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2 and all(running(pid) for pid in pids)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 60
    while any(running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(running(pid) for pid in pids)
