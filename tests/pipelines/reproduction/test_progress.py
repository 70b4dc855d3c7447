"""Tests the line before each stage: its place, and the time that is left."""

import pytest

from pipelines.reproduction.progress import Progress


class Clock:
    """Goes on by what a test adds."""

    def __init__(self):
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def run(progress: Progress, clock: Clock, name: str, seconds: float) -> None:
    progress.look(name)
    progress.start(name)
    clock.now += seconds
    progress.end(name)


@pytest.fixture
def clock():
    return Clock()


def progress(clock: Clock, lines: list[str]) -> Progress:
    names = ["prepare@a", "train@a-x", "train@a-y", "check@a-x", "check@a-y", "report"]
    return Progress(names, clock, lines.append)


def test_nothing_is_known_before_the_first_stage_ended(clock):
    lines = []
    run(progress(clock, lines), clock, "prepare@a", 5)
    assert lines == ["[1/6] prepare@a"]


def test_the_rest_takes_the_mean_of_each_kind_and_of_all_where_none_is_known(clock):
    lines = []
    counted = progress(clock, lines)
    run(counted, clock, "prepare@a", 10)
    run(counted, clock, "train@a-x", 40)
    counted.look("train@a-y")
    # 40 of its kind, then three of the mean of 10 and 40
    assert counted.left() == pytest.approx(40 + 3 * 25)
    counted.start("train@a-y")
    assert lines[-1] == "[3/6] train@a-y, about 2 min left"


def test_stages_that_had_nothing_to_do_make_the_rest_shorter(clock):
    counted = progress(clock, [])
    for name in ("prepare@a", "train@a-x"):
        counted.look(name)
    run(counted, clock, "train@a-y", 30)
    counted.look("check@a-x")
    # one of three so far ran
    assert counted.left() == pytest.approx(3 * 30 / 3)


def test_short_rests_are_not_told(clock):
    lines = []
    counted = progress(clock, lines)
    run(counted, clock, "prepare@a", 1)
    run(counted, clock, "train@a-x", 1)
    assert lines[-1] == "[2/6] train@a-x"
