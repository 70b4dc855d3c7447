"""Tests the line before each stage: its place, and the time that is left."""

import pytest

from pipelines.reproduction.progress import Progress


class Clock:
    """Goes on by what a test adds."""

    def __init__(self):
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def run(progress: Progress, clock: Clock, name: str, seconds: float) -> str:
    """Runs a stage, and returns the line before it."""
    progress.look()
    line = progress.start(name)
    clock.now += seconds
    progress.end(name)
    return line


def skip(progress: Progress, name: str) -> None:
    progress.look()
    progress.end(name)


@pytest.fixture
def clock():
    return Clock()


def progress(clock: Clock, jobs: int = 1) -> Progress:
    names = ["prepare@a", "train@a-x", "train@a-y", "check@a-x", "check@a-y", "report"]
    return Progress(names, jobs, clock)


def test_nothing_is_known_before_the_first_stage_ended(clock):
    assert run(progress(clock), clock, "prepare@a", 5) == "[1/6] prepare@a"


def test_the_rest_takes_the_mean_of_each_kind_and_of_all_where_none_is_known(clock):
    counted = progress(clock)
    run(counted, clock, "prepare@a", 10)
    run(counted, clock, "train@a-x", 40)
    counted.look()
    # 40 of its kind, then three of the mean of 10 and 40
    assert counted.left() == pytest.approx(40 + 3 * 25)
    assert counted.start("train@a-y") == "[3/6] train@a-y, about 2 min left"


def test_stages_that_had_nothing_to_do_make_the_rest_shorter(clock):
    counted = progress(clock)
    for name in ("prepare@a", "train@a-x"):
        skip(counted, name)
    run(counted, clock, "train@a-y", 30)
    # one of three so far ran
    assert counted.left() == pytest.approx(3 * 30 / 3)


def test_short_rests_are_not_told(clock):
    counted = progress(clock)
    run(counted, clock, "prepare@a", 1)
    assert run(counted, clock, "train@a-x", 1) == "[2/6] train@a-x"


def test_two_at_a_time_take_half_as_long_and_those_that_run_still_count(clock):
    counted = progress(clock, jobs=2)
    run(counted, clock, "prepare@a", 10)
    counted.look()
    counted.start("train@a-y")
    # one that runs and four to come
    assert counted.left() == pytest.approx(5 * 10 / 2)
    counted.look()
    assert counted.start("train@a-x") == "[3/6] train@a-x, about 20 s left"
