"""Tests that stages overlap, that none begins before those it needs, and that one thread is in DVC."""

import contextlib
import os
import random
import signal
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.reproduction import side_by_side
from pipelines.reproduction.side_by_side import Queue, Turn

# seconds after which a test is held to hang
HANGS = 20


class Lock:
    """Is like DVC's lock: it refuses to be taken or freed twice, and knows its holder."""

    def __init__(self):
        self.holder = None

    def lock(self) -> None:
        assert self.holder is None
        self.holder = threading.get_ident()

    def unlock(self) -> None:
        assert self.holder == threading.get_ident()
        self.holder = None


class Work:
    """Notes which stages run at the same time.

    Args:
        lock: DVC's.
        stage: What a stage does while others may run.
    """

    def __init__(self, lock: Lock, stage=lambda name: None):
        self.lock = lock
        self.turn = Turn(lock)
        self.stage = stage
        self.running: set = set()
        self.begun: list = []
        self.most = 0
        self.ended: set = set()
        self.before: dict = {}

    def __call__(self, name) -> None:
        assert self.lock.holder == threading.get_ident()
        self.before[name] = set(self.ended)
        self.begun.append(name)
        self.running.add(name)
        self.most = max(self.most, len(self.running))
        # as DVC does around a command
        self.lock.unlock()
        try:
            with self.turn.given_away():
                self.stage(name)
        finally:
            self.lock.lock()
            self.running.remove(name)
        self.ended.add(name)


graphs = st.integers(1, 12).flatmap(
    lambda count: st.fixed_dictionaries(
        {
            number: st.sets(st.integers(0, number - 1)) if number else st.just(set())
            for number in range(count)
        }
    )
)


@settings(deadline=None, max_examples=60)
@given(graphs, st.integers(1, 4), st.randoms(use_true_random=False))
def test_each_stage_runs_once_after_all_that_it_needs(graph, jobs, chance: random.Random):
    work = Work(Lock(), lambda name: time.sleep(chance.random() / 2000))
    side_by_side.run(graph, work, jobs, work.turn)
    assert sorted(work.begun) == sorted(graph)
    assert all(needed <= work.before[stage] for stage, needed in graph.items())
    assert work.most <= jobs and work.lock.holder is None
    if jobs == 1:
        queue, order = Queue(graph), []
        while queue:
            order.append(queue.take())
            queue.end(order[-1])
        assert work.begun == order


def test_two_stages_that_do_not_need_each_other_overlap():
    both = threading.Barrier(2, timeout=HANGS)
    work = Work(Lock(), lambda name: both.wait())
    side_by_side.run({"a": set(), "b": set()}, work, 2, work.turn)
    assert work.most == 2


def test_stages_that_the_plan_leaves_out_count_as_ended():
    work = Work(Lock())
    side_by_side.run({"b": {"a"}}, work, 2, work.turn)
    assert work.begun == ["b"]


def test_stages_that_wait_for_each_other_are_an_error_and_no_hang():
    work = Work(Lock())
    with pytest.raises(RuntimeError, match="Stages wait for each other: b, c"):
        side_by_side.run({"a": set(), "b": {"c"}, "c": {"b"}}, work, 2, work.turn)
    assert work.begun == ["a"]


def test_after_an_error_nothing_begins_and_what_runs_comes_to_its_end():
    both = threading.Barrier(2, timeout=HANGS)
    slow_ended = []

    def stage(name: str) -> None:
        both.wait()
        if name == "bad":
            raise ValueError("no")
        time.sleep(0.2)
        slow_ended.append(name)

    work = Work(Lock(), stage)
    with pytest.raises(ValueError, match="no"):
        side_by_side.run({"bad": set(), "slow": set(), "later": set()}, work, 2, work.turn)
    assert slow_ended == ["slow"] and "later" not in work.begun
    assert work.lock.holder is None


def test_ctrl_c_lets_nothing_begin_and_is_raised_where_no_stage_says_it():
    def stage(name: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        # the main thread handles it
        time.sleep(0.2)

    work = Work(Lock(), stage)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        side_by_side.run({"a": set(), "b": {"a"}}, work, 2, work.turn)
    assert work.begun == ["a"] and signal.getsignal(signal.SIGINT) is before


def test_a_stage_that_ctrl_c_ended_says_so_itself():
    def stage(name: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        raise ValueError("ended by Ctrl-C")

    work = Work(Lock(), stage)
    with pytest.raises(ValueError, match="ended by Ctrl-C"):
        side_by_side.run({"a": set()}, work, 1, work.turn)


def test_a_lock_that_another_command_holds_is_an_error_and_no_hang():
    class Held(Lock):
        def lock(self) -> None:
            raise OSError("held")

    turn = Turn(Held())
    with pytest.raises(OSError, match="held"):
        side_by_side.run({"a": set(), "b": set()}, lambda name: None, 2, turn)
    # nobody was left with the turn
    assert turn.free.acquire(timeout=1)


@pytest.mark.parametrize(
    ("cores", "gibibytes", "jobs"), [(1, 64, 1), (2, 64, 2), (64, 64, 4), (8, 15, 3), (8, 2, 1)]
)
def test_there_are_as_many_jobs_as_cores_and_memory_allow_and_four_at_most(
    monkeypatch, cores, gibibytes, jobs
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    numbers = {"SC_PHYS_PAGES": gibibytes * 2**30 // 4096, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", numbers.get)
    assert side_by_side.usual_jobs() == jobs


def test_an_error_in_dvc_itself_gives_the_turn_back():
    turn = Turn(Lock())
    with contextlib.suppress(ValueError), turn:
        raise ValueError
    assert turn.lock.holder is None and turn.free.acquire(timeout=1)
