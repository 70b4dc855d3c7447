"""Discretises and composes the privacy loss of Poisson-sampled Gaussian steps.

The quantity is ln(p(x) / p'(x)) of an output x that is drawn from p. One of p and p' is N(0, z^2),
where z is the noise multiplier. The other is (1 - q) N(0, z^2) + q N(1, z^2), where q is the
sampling rate. The neighbouring relation is: add or remove one record. So there are two directions,
and epsilon is the larger of both.

The estimate is pessimistic: at every epsilon its delta is at least the true one. The law on the
lattice joins the points of the exact curve delta(epsilon) (Connect the Dots, Doroshenko et al. 2022,
Algorithm 1), and the cut upper tail becomes an infinite loss. A rounding the other way would claim
less than a run spends.

The library is dp-accounting. It defines the bounds, the distribution functions and the composition.
Ours are its loop over the lattice, as array operations, and the search for the tails to cut. The
tests compare both with the library.

>>> round(sampled_epsilon(schedule=((1.0, 0.01, 500), (2.0, 0.02, 500)), delta=1e-5), 3)
1.615
"""

import math
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

# Step of the losses' lattice in final figures, the library's own.
FINE_INTERVAL = 1e-4
# The most mass that one composition cuts off, the library's own.
TAIL_MASS = 1e-15
# How much the curve delta(epsilon) may rise between two points, the library's own.
ROUNDING_ERROR = 1e-12
# Longer laws are stored as an array, shorter ones as a dict, by the library's own limit.
SPARSE_SIZE = 1000
# Orders of the Chernoff bound, in units of one over the length of the law, the library's own.
CHERNOFF_ORDERS = 20


def dp_accounting() -> ModuleType:
    """Imports the library where it is used.

    That takes two seconds, which the stages without DP-SGD need not pay.
    """
    import dp_accounting
    import dp_accounting.pld

    return dp_accounting


# It takes seconds, and clients with equal budgets need the same figure.
@lru_cache(maxsize=256)
def sampled_epsilon(
    *, schedule: tuple[tuple[float, float, int], ...], delta: float, mu: float = 0.0
) -> float:
    """Returns the epsilon of sampled Gaussian steps and of Gaussian releases together.

    Args:
        schedule: (noise multiplier, sampling rate, number of steps) of equal steps, above 0 steps.
        delta: The delta of the guarantee.
        mu: What the Gaussian releases come to, in Gaussian DP; 0 if there are none.
    """
    library = dp_accounting().pld.privacy_loss_distribution
    total = library.identity(FINE_INTERVAL)
    if mu > 0:
        gaussian = sampled_gaussian(
            noise_multiplier=1 / mu, sampling_rate=1.0, interval=FINE_INTERVAL
        )
        total = total.compose(gaussian)
    for noise_multiplier, sampling_rate, count in schedule:
        if sampling_rate == 0:
            continue
        if noise_multiplier == 0:
            return math.inf
        step = _step(noise_multiplier, sampling_rate)
        total = total.compose(self_composed(step, count))
    return total.get_epsilon_for_delta(delta)


# a plan asks for the same step in other numbers
@lru_cache(maxsize=16)
def _step(noise_multiplier: float, sampling_rate: float) -> Any:
    """Returns the distribution of one step on the lattice of final figures."""
    return sampled_gaussian(
        noise_multiplier=noise_multiplier, sampling_rate=sampling_rate, interval=FINE_INTERVAL
    )


def sampled_gaussian(*, noise_multiplier: float, sampling_rate: float, interval: float) -> Any:
    """Returns the library's privacy loss distribution of one step, in both directions.

    Args:
        noise_multiplier: Noise standard deviation over sensitivity, above 0.
        sampling_rate: The probability of a record to be in a lot, in (0, 1].
        interval: Step of the losses' lattice, above 0.
    """
    pld = dp_accounting().pld
    adjacency = pld.privacy_loss_mechanism.AdjacencyType
    # Without sampling both directions have the same law.
    directions = (adjacency.REMOVE,) if sampling_rate == 1 else (adjacency.REMOVE, adjacency.ADD)
    laws = []
    for direction in directions:
        loss = pld.privacy_loss_mechanism.GaussianPrivacyLoss(
            noise_multiplier, sampling_prob=sampling_rate, adjacency_type=direction
        )
        laws.append(_discretised(loss, direction == adjacency.ADD, interval))
    return pld.privacy_loss_distribution.PrivacyLossDistribution(*laws)


def self_composed(distribution: Any, count: int) -> Any:
    """Returns the distribution after `count` steps, each with a fresh distribution of one step."""
    # The library has no public access to a law. The lock pins its version.
    laws = [_self_composed(distribution._pmf_remove, count)]
    if not distribution._symmetric:
        laws.append(_self_composed(distribution._pmf_add, count))
    return type(distribution)(*laws)


def _discretised(loss: Any, is_add: bool, interval: float) -> Any:
    """Returns the library's pessimistic law of one direction's loss on the lattice."""
    bounds = loss.connect_dots_bounds()
    # The lattice covers the bounds: losses above it count as infinite.
    lowest = math.floor(bounds.epsilon_lower / interval)
    highest = math.ceil(bounds.epsilon_upper / interval)
    epsilons = np.arange(lowest, highest + 1) * interval
    deltas = _deltas(loss, is_add, epsilons)
    # Not a number fails the comparison, too.
    if not (np.diff(deltas, prepend=1.0) <= ROUNDING_ERROR).all():
        raise ValueError(f"The privacy loss of noise {loss.standard_deviation:g} has no curve.")
    deltas = np.minimum.accumulate(deltas)
    probabilities = _connect_the_dots(deltas, interval)
    laws = dp_accounting().pld.pld_pmf
    infinity_mass = deltas[-1]
    if len(probabilities) <= SPARSE_SIZE:
        losses = range(lowest, highest + 1)
        sparse = dict(zip(losses, probabilities))
        return laws.SparsePLDPmf(sparse, interval, infinity_mass, pessimistic_estimate=True)
    return laws.DensePLDPmf(
        interval, lowest, probabilities, infinity_mass, pessimistic_estimate=True
    )


def _deltas(loss: Any, is_add: bool, epsilons: np.ndarray) -> np.ndarray:
    """Returns the exact delta of one direction at each epsilon, its hockey-stick divergence.

    The loss falls with the output x. So the divergence is P(X <= x) - e^epsilon P'(X <= x), at the
    largest x whose loss is at least epsilon.
    """
    rate = loss.sampling_prob
    deltas = np.zeros_like(epsilons)
    inside = np.full(len(epsilons), True)
    if rate < 1 and is_add:
        # No loss is as large as -ln(1 - q).
        inside = epsilons < -math.log1p(-rate)
    elif rate < 1:
        # Every loss is above ln(1 - q).
        inside = epsilons > math.log1p(-rate)
        deltas[~inside] = -np.expm1(epsilons[~inside])
    reached = epsilons[inside]
    outputs = _outputs(loss, is_add, reached)
    lower = np.exp(reached + loss.mu_lower_log_cdf(outputs))
    deltas[inside] = loss.mu_upper_cdf(outputs) - lower
    return np.clip(deltas, 0, 1)


def _outputs(loss: Any, is_add: bool, epsilons: np.ndarray) -> np.ndarray:
    """Returns the largest output whose loss is at least epsilon, for each epsilon."""
    rate = loss.sampling_prob
    unsampled = epsilons
    if rate < 1:
        # A removed record's loss is ln(1 - q + q e^unsampled). An added one's has both signs turned.
        sign = -1.0 if is_add else 1.0
        signed = sign * epsilons
        shifted = signed + np.log(1 / rate)
        # At the bound itself the logarithm is that of a rounding error.
        at_bound = _is_close(signed, math.log(1 - rate))
        with np.errstate(invalid="ignore", divide="ignore"):
            inverse = shifted + np.log1p(-np.exp(np.log(1 / rate - 1) - shifted))
        # The library computes a loss of 0 without a logarithm of a difference.
        inverse[signed == 0] = np.log(1 / rate + (1 - 1 / rate))
        inverse[at_bound] = -np.inf
        unsampled = sign * inverse
    outputs = -0.5 - unsampled * loss.standard_deviation**2
    return outputs + 1 if is_add else outputs


def _is_close(values: np.ndarray, bound: float) -> np.ndarray:
    """Returns where math.isclose holds."""
    return np.abs(values - bound) <= 1e-9 * np.maximum(np.abs(values), abs(bound))


def _connect_the_dots(deltas: np.ndarray, interval: float) -> np.ndarray:
    """Returns the probability of each loss of the lattice, from the curve's deltas.

    The law's own delta(epsilon) equals the exact one on the lattice. Between two of its points it
    is above: linear in e^epsilon, where the exact curve is convex.
    """
    if len(deltas) == 1:
        return 1 - deltas
    differences = np.diff(deltas)
    growth = math.expm1(interval)
    probabilities = np.empty_like(deltas)
    probabilities[0] = 1 - deltas[0] + differences[0] / growth
    inner = differences[1:] - differences[:-1] * math.exp(interval)
    probabilities[1:-1] = inner / growth
    probabilities[-1] = differences[-1] / math.expm1(-interval)
    return np.maximum(0.0, probabilities)


def _self_composed(law: Any, count: int) -> Any:
    """Returns one direction's law after `count` steps, as the library's `self_compose` does."""
    laws = dp_accounting().pld.pld_pmf
    is_sparse = isinstance(law, laws.SparsePLDPmf)
    # The library composes a short law with itself by hand where the product stays short.
    if is_sparse and (count == 1 or law.size**2 <= SPARSE_SIZE):
        return law.self_compose(count, TAIL_MASS)
    law = law.to_dense_pmf()
    first, probabilities = _self_convolved(law._probs, count)
    # The cut tails count as infinite losses.
    infinity_mass = TAIL_MASS - math.expm1(count * math.log1p(-law._infinity_mass))
    return laws.DensePLDPmf(
        law._discretization,
        law._lower_loss * count + first,
        probabilities,
        infinity_mass,
        pessimistic_estimate=True,
    )


def _self_convolved(probabilities: np.ndarray, count: int) -> tuple[int, np.ndarray]:
    """Returns the first index of the convolved law that is not cut off, and the law from there."""
    # The accounting of Gaussian releases alone needs no transform.
    from scipy import fft

    first, last = _chernoff_bounds(probabilities, count)
    length = last - first + 1
    fast_length = fft.next_fast_len(max(length, len(probabilities)))
    convolved = np.real(fft.ifft(fft.fft(probabilities, fast_length) ** count))
    # The transform wraps around.
    return first, np.roll(convolved, -first)[:length]


def _chernoff_bounds(probabilities: np.ndarray, count: int) -> tuple[int, int]:
    """Returns the indices outside of which the convolved law has at most TAIL_MASS.

    The library computes the moments at 40 orders k / n, each with its own exponentials. Here one
    exponential is raised from order to order.
    """
    size = len(probabilities)
    first = 0
    last = (size - 1) * count
    for sign in (1, -1):
        factor = np.exp(sign * np.arange(size) / size)
        tilted = probabilities
        for number in range(1, CHERNOFF_ORDERS + 1):
            tilted = tilted * factor
            moment = tilted.sum()
            if moment <= 0:
                continue
            order = sign * number / size
            bound = (count * math.log(moment) + math.log(2 / TAIL_MASS)) / order
            if sign > 0:
                last = min(last, math.ceil(bound))
            else:
                first = max(first, math.floor(bound))
    return first, last
