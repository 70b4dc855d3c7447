"""Draws one release many times, and scores draws so that two worlds can be told apart.

The two-worlds audits share this. Noise is Gaussian of one deviation in every coordinate, so the
likelihood ratio of two worlds is the projection of a draw on the difference of their noiseless
statistics. An adversary who knows all records but one computes both.
"""

import numpy as np

from pipelines.privacy import discrete_gaussian
from pipelines.privacy.noise import Noise

# of each bound: several mechanisms are audited at once, and a false alarm must stay rare
CONFIDENCE = 0.999


def draws(total: np.ndarray, count: int, *, sigma: float, scale: int, noise: Noise) -> np.ndarray:
    """Releases the same integer statistic many times, in one call of the real release.

    Args:
        total: The statistic, in lattice steps.
        count: How many releases to make.
        sigma: The standard deviation of the noise.
        scale: Lattice steps per unit.
        noise: The noise source.

    Returns:
        float64 [count, ...].
    """
    repeated = np.broadcast_to(total, (count, *total.shape))
    return discrete_gaussian.release(repeated, sigma=sigma, scale=scale, noise=noise)


def projected(released: np.ndarray, centre: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """Projects each release on the difference of two worlds; the score is zero halfway.

    It is not divided by the length of the difference: so the scores of several releases add up to
    their likelihood ratio.

    Args:
        released: [n, ...].
        centre: The point halfway between the worlds. It has the statistic's shape, or [n, ...]
            where it depends on earlier releases.
        difference: The difference of the worlds, of the same shape.

    Returns:
        The scores [n].

    >>> projected(np.array([[1.0, 2.0], [3.0, 2.0]]), centre=np.ones(2), difference=np.ones(2))
    array([1., 3.])
    """
    return ((released - centre) * difference).reshape(len(released), -1).sum(1)
