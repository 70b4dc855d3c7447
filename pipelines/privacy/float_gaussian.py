"""Applies the Gaussian mechanism to sums that are floats: gradients and weights.

Float noise added to a float sum reaches some floats and not others, and which ones tells what the
sum was (Mironov 2012): an active server that makes a sum zero but for one record sees that record
in one reply. So sum and noise are added in float64 and rounded to a grid, a power of two near a
thousandth of the deviation. That is post-processing, and each point of the grid is reached by
millions of float64 noises from any sum, but beyond some eight deviations.

What is claimed is the bound of the exact normal. Unlike the lattice's discrete noise
(`discrete_gaussian`), it has no slack in delta.

>>> from pipelines.privacy.noise import SeededForTests
>>> noisy = release(np.zeros(1000), deviation=2.0, noise=SeededForTests(0))
>>> bool(1.9 < noisy.std() < 2.1)
True
"""

import math

import numpy as np

from pipelines.privacy.noise import Noise

# bits of the deviation below the grid's step; the rounding adds less than a ten-millionth to the
# variance
GRID = 10


def release(total: np.ndarray, *, deviation: float, noise: Noise) -> np.ndarray:
    """Returns a sum plus N(0, deviation^2) on each number, rounded to the grid, float64.

    Args:
        total: The sum.
        deviation: The standard deviation of the noise; 0 returns the sum as it is.
        noise: The noise source.
    """
    total = np.asarray(total, np.float64)
    if deviation == 0:
        return total
    step = 2.0 ** (math.floor(math.log2(deviation)) - GRID)
    return np.round((total + deviation * noise.normal(total.shape)) / step) * step


def signal_to_noise(squares: float, size: int, deviation: float) -> float:
    """Returns the released squared norm over what noise alone has in the mean, less one.

    It is an estimate without bias, so that it may be below 0. It is of what was released, and free
    to publish.

    Args:
        squares: The squared norm of the released numbers.
        size: How many numbers were released.
        deviation: The standard deviation of their noise.
    """
    return squares / (size * deviation**2) - 1 if deviation else math.inf
