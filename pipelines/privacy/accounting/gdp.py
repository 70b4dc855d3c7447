"""Computes Gaussian differential privacy (Dong, Roth and Su 2022).

It is exact for Gaussian releases without sampling. mu is sensitivity over noise standard deviation.
Several releases compose to the root of the sum of their squares. That stays true where later ones
are chosen after earlier ones, as long as the sum is held below a bound fixed in advance (Smith and
Thakurta 2022), which is what a lifetime cap does.

>>> mu = gdp_mu(epsilon=3.0, delta=1e-5)
>>> round(mu, 4), round(gdp_epsilon(mu=compose([mu, mu]), delta=1e-5), 3)
(0.7191, 4.463)
"""

import math

from scipy.optimize import brentq
from scipy.special import log_ndtr

# a larger finite epsilon is planned at 30: a stronger promise, and exp() stays finite
LARGEST_EPSILON = 30.0
# the orders of DataLens' accountant
CLASSIC_ORDERS = (1.1, *range(2, 200))


def gdp_delta(*, epsilon: float, mu: float) -> float:
    """Returns delta(epsilon) of a mu-GDP mechanism (Balle and Wang 2018, Theorem 8)."""
    if mu == 0:
        return 0.0
    first = log_ndtr(-epsilon / mu + mu / 2)
    second = epsilon + log_ndtr(-epsilon / mu - mu / 2)
    if math.isinf(first):
        return 0.0
    return float(-math.exp(first) * math.expm1(second - first))


def gdp_epsilon(*, mu: float, delta: float) -> float:
    """Returns the least epsilon >= 0 at which a mu-GDP mechanism is (epsilon, delta)-DP."""
    if math.isinf(mu):
        return math.inf
    if gdp_delta(epsilon=0.0, mu=mu) <= delta:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1
    return brentq(lambda epsilon: gdp_delta(epsilon=epsilon, mu=mu) - delta, 0.0, high, xtol=1e-12)


def gdp_mu(*, epsilon: float, delta: float) -> float:
    """Returns the largest mu at which mu-GDP implies (epsilon, delta)-DP.

    It is infinite for an infinite epsilon.
    """
    if math.isinf(epsilon):
        return math.inf
    epsilon = min(epsilon, LARGEST_EPSILON)

    def excess(mu: float) -> float:
        return gdp_delta(epsilon=epsilon, mu=mu) - delta

    return brentq(excess, min(1e-9, delta), 50.0, xtol=1e-13)


def compose(mus: list[float]) -> float:
    """Returns mu of several releases of the same records together."""
    return math.sqrt(sum(mu * mu for mu in mus))


def classic_epsilon(*, mu: float, delta: float) -> tuple[float, float]:
    """Returns (epsilon, order) as the DataLens code reports it.

    It is RDP with the 2017 conversion over that code's orders. It is shown beside the exact value
    so that a reader can compare with the papers; it is never the claim.
    """
    candidates = []
    for order in CLASSIC_ORDERS:
        candidates.append((order * mu * mu / 2 + math.log(1 / delta) / (order - 1), order))
    return min(candidates)


def rounding_slack(*, epsilon: float, sigma: float, draws: int) -> float:
    """Returns the delta that a discrete Gaussian adds where accounting assumes a continuous one.

    An integer sum plus a rounded continuous Gaussian is post-processing of the Gaussian mechanism,
    hence mu-GDP. The discrete Gaussian differs from the rounded one by at most 1 / (24 sigma^2) in
    total variation per draw, for sigma >= 8 lattice steps (half the integral of |g''| / 24, with
    the sum's error; checked by brute force in the tests). Both worlds move by that: delta grows by
    (1 + e^epsilon) draws / (24 sigma^2).

    Args:
        epsilon: The epsilon of the guarantee.
        sigma: The standard deviation of the noise, in lattice steps.
        draws: How many numbers are released.
    """
    if sigma < 8:
        return 1.0
    return (1 + math.exp(epsilon)) * draws / (24 * sigma * sigma)
