"""The Gaussian mechanism on integers: a plan made from the budget, and the release itself.

Quantity: an integer vector, the sum over records (or teachers) of contributions on a lattice of step 1 / `scale`.
Noise: discrete Gaussian on the same lattice. Guarantee: mu-GDP at delta minus the rounding slack
(accounting/gdp.py), so the exact continuous bound serves discrete noise and floating-point attacks find no floats.
"""

import math
from dataclasses import dataclass

import numpy as np

from pipelines.privacy import accounting
from pipelines.privacy.noise import Noise

SLACK_SHARE = 1e-3  # of delta, set aside for the lattice
FINEST = 2**45  # lattice steps per unit: sums over 131,072 records of norm 1 stay within 64 bits


@dataclass(frozen=True)
class Budget:
    """One client's (epsilon, delta) for one release of a generator. Infinite epsilon: a named non-private mode.

    share: of mu squared, where this is a part of a release and the rest is spent by its other parts, in (0, 1].
    """

    epsilon: float
    delta: float
    share: float = 1.0

    @property
    def mu(self) -> float:
        """What may be spent: the exact bound at delta less the share kept for the lattice."""
        whole = accounting.gdp_mu(epsilon=self.epsilon, delta=self.delta * (1 - SLACK_SHARE))
        return math.sqrt(self.share) * whole

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)


def lattice_scale(budget: Budget, *, sigma: float, draws: int) -> int:
    """Lattice steps per unit: the least power of two at which `draws` noise values of deviation `sigma` keep the
    rounding slack within its share of delta. Without noise a fixed fine lattice serves.

    The slack grows with e^epsilon, and releases compose: it is held at the largest epsilon that is ever planned, so
    that a client's total below that needs no second look. A finer lattice costs nothing.
    """
    if not budget.private:
        return 2**20
    slack = accounting.rounding_slack(epsilon=accounting.LARGEST_EPSILON, sigma=8.0, draws=draws)
    allowed = SLACK_SHARE * budget.delta / slack
    if allowed == 0:  # delta is next to nothing: no lattice is fine enough
        return 2 * FINEST
    return 2 ** max(0, math.ceil(math.log2(8.0 / math.sqrt(min(allowed, 1.0)) / sigma)))


def on_lattice(values: np.ndarray, scale: int) -> np.ndarray:
    """int64; cut towards zero, so that no contribution's norm grows (beyond a float's last bit, 1e-16 of it).

    Nothing here fails by how many rows there are: who saw that no release came would learn that number. A sum beyond 64
    bits wraps, which is post-processing of one that does not, and spoils the images alone.
    """
    return np.trunc(values * scale).astype(np.int64)


def release(total: np.ndarray, *, sigma: float, scale: int, noise: Noise) -> np.ndarray:
    """The noisy sum in original units, float64. `total` is int64 in lattice steps; sigma in original units."""
    if sigma > 0:
        total = total + noise.discrete_gaussian(total.shape, sigma * scale)
    return total / scale
