"""Computes the epsilon of Poisson-sampled Gaussian steps, each with its own noise and rate.

A schedule is fixed in advance or follows from public data. For noise chosen from private outcomes
see `filters`; for the noise that a budget allows see `calibration`.

>>> schedule = [Steps(1.0, 0.01, 500), Steps(2.0, 0.02, 500)]
>>> round(schedule_epsilon(schedule=schedule, delta=1e-5), 3)
1.895
>>> round(schedule_epsilon_pld(schedule=schedule, delta=1e-5), 3)
1.615
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pipelines.privacy.accounting.best_order import least_epsilon
from pipelines.privacy.accounting.gdp import compose, gdp_epsilon
from pipelines.privacy.accounting.loss_distributions import sampled_epsilon
from pipelines.privacy.accounting.renyi import ORDERS, conversion, rdp_epsilon, sampled_gaussian_rdp


class Steps(NamedTuple):
    """Describes equal steps.

    Attributes:
        noise_multiplier: Noise standard deviation over sensitivity (the clipping norm).
        sampling_rate: The probability of a record to be in a lot.
        count: The number of steps.
    """

    noise_multiplier: float
    sampling_rate: float
    count: int


Schedule = Sequence[Steps]


def on_one_lot(*, noise_multipliers: Sequence[float]) -> float:
    """Returns the noise multiplier of one step that costs what releases of one lot cost together.

    >>> round(on_one_lot(noise_multipliers=[2.0, 2.0]), 4)
    1.4142
    """
    return 1 / math.sqrt(sum(noise**-2 for noise in noise_multipliers))


def schedule_rdp(*, schedule: Schedule, order: float) -> float:
    """Returns rho(order) of all steps together."""
    total = 0
    for noise, rate, count in schedule:
        if count:
            rdp = sampled_gaussian_rdp(noise_multiplier=noise, sampling_rate=rate, order=order)
            total += count * rdp
    return total


def schedule_epsilon(
    *,
    schedule: Schedule,
    delta: float,
    convert: Callable[..., float] = conversion,
    orders: Sequence[float] = ORDERS,
) -> float:
    """Returns the epsilon of a schedule by Rényi DP, the least over the orders.

    Args:
        schedule: The steps.
        delta: The delta of the guarantee.
        convert: `renyi.conversion` or `renyi.classic_conversion`.
        orders: The Rényi orders, from small to large.
    """
    return _least(tuple(map(tuple, schedule)), delta, convert, tuple(orders))


# clients of a round have mostly taken the same steps, and each computes it after each round
@lru_cache(maxsize=64)
def _least(
    schedule: Schedule, delta: float, convert: Callable[..., float], orders: tuple[float, ...]
) -> float:
    def epsilon(order: float) -> float:
        rdp = schedule_rdp(schedule=schedule, order=order)
        return rdp_epsilon(rdp=rdp, order=order, delta=delta, convert=convert)

    return least_epsilon(epsilon, orders)


def schedule_epsilon_pld(*, schedule: Schedule, delta: float, levels: int = 100) -> float:
    """Returns the epsilon by privacy loss distributions (dp-accounting): tight, for final figures.

    Args:
        schedule: The steps.
        delta: The delta of the guarantee.
        levels: More different noise multipliers than this are rounded down to so many, which is
            still an upper bound.
    """
    schedule = [Steps(*steps) for steps in schedule if steps[2]]
    if not schedule:
        return 0.0
    if any(steps.noise_multiplier == 0 for steps in schedule):
        return math.inf
    return sampled_epsilon(schedule=tuple(_coarser(schedule, levels)), delta=delta)


def schedule_epsilon_gdp(*, schedule: Schedule, delta: float) -> float:
    """Returns the epsilon of steps that take all records, exactly.

    Raises:
        ValueError: One of them samples.
    """
    mus = []
    for noise, rate, count in schedule:
        if rate < 1:
            raise ValueError("Gaussian DP is exact for steps without sampling alone.")
        if count:
            mus.append(math.sqrt(count) / noise if noise * noise > 0 else math.inf)
    return gdp_epsilon(mu=compose(mus), delta=delta)


def _coarser(schedule: Schedule, levels: int) -> list[Steps]:
    """Merges equal steps, and rounds noise down to a grid if there are more levels than that.

    The grid is geometric.
    """
    noises = np.unique([steps.noise_multiplier for steps in schedule])
    if len(noises) > levels:
        grid = np.geomspace(noises[0], noises[-1], levels)
        grid[0] = noises[0]
        grid[-1] = noises[-1]
    else:
        grid = noises
    merged: dict[tuple[float, float], int] = {}
    for noise, rate, count in schedule:
        floor = float(grid[np.searchsorted(grid, noise, side="right") - 1])
        merged[floor, rate] = merged.get((floor, rate), 0) + count
    return [Steps(*key, count) for key, count in merged.items()]
