"""The Gaussian mechanism on sums that are floats: gradients and weights.

Float noise added to a float sum reaches some floats and not others, and which ones tells what the sum was (Mironov
2012): an active server that makes a sum zero but for one record sees that record in one reply. So sum and noise are
added in float64 and rounded to a grid, a power of two near a thousandth of the deviation: post-processing, and each
point of the grid is reached by millions of float64 noises from any sum, but beyond some eight deviations. What is
claimed is the bound of the exact normal. Unlike the lattice's discrete noise (`discrete_gaussian`), it has no slack in
delta.
"""

import math

import numpy as np

from pipelines.privacy.noise import Noise

GRID = 10  # bits of the deviation below the grid's step; the rounding adds less than a ten-millionth to the variance


def release(total: np.ndarray, *, deviation: float, noise: Noise) -> np.ndarray:
    """float64, on the grid: total plus N(0, deviation^2) on each number. Without a deviation, the total."""
    total = np.asarray(total, np.float64)
    if deviation == 0:
        return total
    step = 2.0 ** (math.floor(math.log2(deviation)) - GRID)
    return np.round((total + deviation * noise.normal(total.shape)) / step) * step


def signal_to_noise(squares: float, size: int, deviation: float) -> float:
    """By what factor the squared norm of `size` released numbers is above that which noise alone has in the mean: an
    estimate without bias, so that it may be below 0. Of what was released: free to tell."""
    return squares / (size * deviation**2) - 1 if deviation else math.inf
