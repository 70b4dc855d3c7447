"""Tests `datalens` killed and started again: the same bytes, and no step released twice."""

import numpy as np
import pytest

from pipelines.privacy.noise import OsEntropy, SeededForTests
from pipelines.synthesis.base import Where
from pipelines.synthesis.datalens import generator as datalens
from pipelines.synthesis.datalens import journal, student


class Killed(SeededForTests):
    """Draws seeded noise and kills the run at draw `at`, counted from the run's own start."""

    def __init__(self, at: int):
        super().__init__(3)
        self.left = at

    def discrete_gaussian(self, shape, sigma):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().discrete_gaussian(shape, sigma)


@pytest.mark.parametrize("kills", [[0], [3], [4], [7], [9], [2, 2, 3], [5, 1]])
@pytest.mark.parametrize("stochastic, generator", [(True, "mlp"), (False, "conv")])
def test_a_killed_run_ends_in_the_same_bytes(
    monkeypatch, tmp_path, records, small_space, planned, as_bytes, kills, stochastic, generator
):
    """The run is killed before, at and after checkpoints, and more than once."""
    monkeypatch.setattr(journal, "EVERY", 4)
    plan = planned(
        small_space, steps=10, teachers=20, stochastic=stochastic, generator_network=generator
    )
    data = records(30, small_space)
    expected = as_bytes(datalens.fit(data, plan, SeededForTests(3), seed=1))
    where = Where(unfinished=tmp_path / "unfinished")
    done = 0
    for at in kills:
        with pytest.raises(KeyboardInterrupt):
            datalens.fit(data, plan, Killed(done + at), 1, where)  # the draws it skips count too
        done += at
    assert as_bytes(datalens.fit(data, plan, SeededForTests(3), 1, where)) == expected


def test_a_killed_run_never_releases_a_step_twice(
    monkeypatch, tmp_path, records, small_space, planned
):
    """The noise is the operating system's.

    There is one draw per step over all runs, and earlier votes are used.
    """
    monkeypatch.setattr(journal, "EVERY", 3)
    plan, data = planned(small_space, steps=8), records(12, small_space)
    where, drawn, used = Where(unfinished=tmp_path / "unfinished"), [], []

    class Dying(OsEntropy):
        def discrete_gaussian(self, shape, sigma):
            drawn.append(super().discrete_gaussian(shape, sigma))
            return drawn[-1]

    target = student.target

    def watched(fakes, direction, step_length):
        used.append(direction)
        if len(used) == 5:
            raise KeyboardInterrupt
        return target(fakes, direction, step_length)

    monkeypatch.setattr(student, "target", watched)
    with pytest.raises(KeyboardInterrupt):
        datalens.fit(data, plan, Dying(), 1, where)
    datalens.fit(data, plan, Dying(), 1, where)
    assert len(drawn) == 8
    first, second = used[:5], used[5:]  # the second run starts after the checkpoint at 3
    assert len(second) == 5
    for before, again in zip(first[3:], second):
        np.testing.assert_array_equal(before, again)
