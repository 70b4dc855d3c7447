"""Applies the Gaussian mechanism to integers: a plan made from the budget, and the release itself.

Quantity: an integer vector, the sum over records (or teachers) of contributions on a lattice of
step 1 / `scale`. Noise: discrete Gaussian on the same lattice. Guarantee: mu-GDP at delta minus the
rounding slack (accounting/gdp.py), so the exact continuous bound serves discrete noise and
floating-point attacks find no floats.

>>> from pipelines.privacy.noise import SeededForTests
>>> budget = Budget(epsilon=3.0, delta=1e-5)
>>> sigma = 1.0 / budget.mu  # of a sum with sensitivity 1
>>> scale = lattice_scale(budget, sigma=sigma, draws=2)
>>> total = on_lattice(np.array([10.0, 0.5]), scale)
>>> noisy = release(total, sigma=sigma, scale=scale, noise=SeededForTests(0))
>>> noisy.shape, bool(np.all(noisy * scale == np.rint(noisy * scale)))
((2,), True)
"""

import math
from dataclasses import dataclass

import numpy as np

from pipelines.privacy import accounting
from pipelines.privacy.noise import Noise

# of delta, set aside for the lattice
SLACK_SHARE = 1e-3
# lattice steps per unit: sums over 131,072 records of norm 1 stay within 64 bits
FINEST = 2**45


@dataclass(frozen=True)
class Budget:
    """Holds one client's (epsilon, delta) for one release of a generator.

    Attributes:
        epsilon: The epsilon. An infinite one is a named non-private mode.
        delta: The delta.
        share: The share of mu squared, in (0, 1], where this is a part of a release and the rest
            is spent by its other parts.
        lattices: How many parts of the release have a lattice of their own. They share the slack.
    """

    epsilon: float
    delta: float
    share: float = 1.0
    lattices: int = 1

    @property
    def delta_of_noise(self) -> float:
        """Returns delta less the lattice's share, at which the exact bound is taken."""
        return self.delta * (1 - SLACK_SHARE)

    @property
    def mu(self) -> float:
        """Returns what may be spent: the exact bound at delta less the lattice's share."""
        whole = accounting.gdp_mu(epsilon=self.epsilon, delta=self.delta_of_noise)
        return math.sqrt(self.share) * whole

    @property
    def private(self) -> bool:
        """Returns True if epsilon is finite."""
        return math.isfinite(self.epsilon)

    def sigma(self, share: float) -> float:
        """Returns the noise of a release of sensitivity 1 that has this share of mu squared.

        It is 0 where epsilon is infinite.
        """
        return 1 / (self.mu * math.sqrt(share)) if self.private else 0.0


def lattice_scale(budget: Budget, *, sigma: float, draws: int) -> int:
    """Returns the lattice steps per unit that keep the rounding slack within its share of delta.

    It is the least such power of two. A caller may take a finer one, and must look then whether
    64 bits hold its sums (FINEST) and its noise (`noise.WIDEST`). Without noise a fixed fine
    lattice serves. The slack grows with e^epsilon, and releases compose: it is held at the largest
    epsilon that is ever planned, so that a client's total below that needs no second look. A finer
    lattice costs nothing.

    Args:
        budget: The budget, whose delta pays for the slack.
        sigma: The standard deviation of the noise, in units of the sum.
        draws: How many numbers are released.
    """
    if not budget.private:
        return 2**20
    slack = accounting.rounding_slack(epsilon=accounting.LARGEST_EPSILON, sigma=8.0, draws=draws)
    allowed = SLACK_SHARE * budget.delta / budget.lattices / slack
    if allowed == 0:
        # delta is next to nothing: no lattice is fine enough
        return 2 * FINEST
    return 2 ** max(0, math.ceil(math.log2(8.0 / math.sqrt(min(allowed, 1.0)) / sigma)))


def on_lattice(values: np.ndarray, scale: int) -> np.ndarray:
    """Returns values in lattice steps, int64, cut towards zero.

    So no contribution's norm grows (beyond a float's last bit, 1e-16 of it). Nothing here fails by
    how many rows there are: who saw that no release came would learn that number. A sum beyond 64
    bits wraps, which is post-processing of one that does not, and spoils the images alone.
    """
    return np.trunc(values * scale).astype(np.int64)


def count_on_lattice(records: int, scale: int) -> np.ndarray:
    """Returns a number of records in lattice steps, int64 [1], which wraps beyond 64 bits.

    A wider number would be of another type than noise and masks, and be refused for that.
    """
    return np.array([records], np.int64) * np.int64(scale)


def release(total: np.ndarray, *, sigma: float, scale: int, noise: Noise) -> np.ndarray:
    """Returns a noisy sum in original units, float64.

    Args:
        total: The sum, int64 in lattice steps.
        sigma: The standard deviation of the noise, in original units.
        scale: Lattice steps per unit.
        noise: The noise source.
    """
    if sigma > 0:
        total = total + noise.discrete_gaussian(total.shape, sigma * scale)
    return total / scale
