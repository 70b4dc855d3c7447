"""What the two-worlds audits share: many draws of one release, and the best score that tells two worlds apart.

Noise is Gaussian of one deviation in every coordinate, so the likelihood ratio of two worlds is the projection of a
draw on the difference of their noiseless statistics. An adversary who knows all records but one computes both.
"""

import numpy as np

from pipelines.privacy import discrete_gaussian
from pipelines.privacy.noise import Noise

CONFIDENCE = (
    0.999  # of each bound: several mechanisms are audited at once, and a false alarm must stay rare
)


def draws(total: np.ndarray, count: int, *, sigma: float, scale: int, noise: Noise) -> np.ndarray:
    """float64 [count, ...]: the same integer statistic released `count` times, in one call of the real release."""
    return discrete_gaussian.release(
        np.broadcast_to(total, (count, *total.shape)), sigma=sigma, scale=scale, noise=noise
    )


def projected(released: np.ndarray, centre: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """float [n]: the projection of each release [n, ...] on `difference`, zero halfway at `centre`.

    `centre` and `difference` have the statistic's shape, or one for each release where they depend on earlier ones.
    Not divided by the length of the difference: so the scores of several releases add up to their likelihood ratio.
    """
    return ((released - centre) * difference).reshape(len(released), -1).sum(1)
