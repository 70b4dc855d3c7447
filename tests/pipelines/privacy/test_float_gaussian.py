"""Tests noise on floats: its distribution, its grid, and that no float of a reply tells which sum
it came from.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from pipelines.privacy import float_gaussian
from pipelines.privacy.noise import OsEntropy, SeededForTests


def grid(deviation: float) -> float:
    return 2.0 ** (np.floor(np.log2(deviation)) - 10)


@given(deviation=st.floats(1e-6, 1e6), total=st.floats(-1e3, 1e3))
def test_all_that_is_released_lies_on_a_grid_of_a_thousandth_of_the_deviation(deviation, total):
    made = float_gaussian.release(np.full(50, total), deviation=deviation, noise=SeededForTests(0))
    steps = made / grid(deviation)
    np.testing.assert_array_equal(steps, np.round(steps))
    assert deviation / 2048 < grid(deviation) <= deviation / 1024


def test_the_law_is_the_normals_around_the_total():
    made = float_gaussian.release(np.full(20_000, 3.0), deviation=0.7, noise=OsEntropy())
    assert kstest((made - 3.0) / 0.7, "norm").pvalue > 1e-6


def test_without_a_deviation_nothing_is_changed():
    total = np.array([0.1, 0.2], np.float32)
    np.testing.assert_array_equal(
        float_gaussian.release(total, deviation=0.0, noise=OsEntropy()), total
    )


@pytest.mark.parametrize("mechanism", ["ours", "float32 noise on a float32 sum"])
def test_which_floats_come_out_tells_nothing_of_the_sum(mechanism):
    """The test is an attack that our noise must withstand, and a control on which it works.

    The attack asks if noise alone, on a sum of zero, could have given all values.
    """
    rng = np.random.default_rng(0)
    deviation, signal = np.float32(3.7), rng.normal(size=5000).astype(np.float32) * np.float32(1e-3)

    def reply(total: np.ndarray) -> np.ndarray:
        if mechanism == "ours":
            noise = SeededForTests(int(rng.integers(2**31)))
            return float_gaussian.release(total, deviation=float(deviation), noise=noise).astype(
                np.float32
            )
        return total + deviation * rng.standard_normal(len(total), dtype=np.float32)

    def impossible(values: np.ndarray) -> int:
        """Counts values that are no product of the deviation and a float32, or, for our noise, lie
        off the grid.
        """
        if mechanism == "ours":
            steps = values.astype(np.float64) / grid(float(deviation))
            return int((steps != np.round(steps)).sum())
        near = (values / deviation).astype(np.float32)
        around = (near, np.nextafter(near, np.float32(9)), np.nextafter(near, np.float32(-9)))
        return int(np.logical_and.reduce([deviation * one != values for one in around]).sum())

    absent, present = impossible(reply(np.zeros(5000, np.float32))), impossible(reply(signal))
    assert absent == 0
    assert present == 0 if mechanism == "ours" else present > 50
