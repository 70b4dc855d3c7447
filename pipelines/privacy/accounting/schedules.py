"""Poisson-sampled Gaussian steps in number, each with its own noise and rate: epsilon, and calibration both ways.

A schedule is fixed in advance or follows from public data; for noise chosen from private outcomes see filters.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from pipelines.privacy.accounting.gdp import LARGEST_EPSILON
from pipelines.privacy.accounting.renyi import ORDERS, conversion, rdp_epsilon, sampled_gaussian_rdp


class Steps(NamedTuple):
    """`count` equal steps. A noise multiplier is noise standard deviation over sensitivity (the clipping norm)."""

    noise_multiplier: float
    sampling_rate: float
    count: int


Schedule = Sequence[Steps]


def on_one_lot(*, noise_multipliers: Sequence[float]) -> float:
    """The noise multiplier of one step that costs what several releases of the same lot cost together."""
    return 1 / math.sqrt(sum(noise**-2 for noise in noise_multipliers))


def schedule_rdp(*, schedule: Schedule, order: float) -> float:
    """rho(order) of all steps together."""
    return sum(
        count * sampled_gaussian_rdp(noise_multiplier=noise, sampling_rate=rate, order=order)
        for noise, rate, count in schedule
        if count
    )


def schedule_epsilon(
    *, schedule: Schedule, delta: float, convert=conversion, orders: Sequence[float] = ORDERS
) -> float:
    """epsilon at `delta` by Rényi DP, the least over `orders`; `convert` as in renyi."""
    return min(
        rdp_epsilon(rdp=schedule_rdp(schedule=schedule, order=order), order=order, delta=delta, convert=convert)
        for order in orders
    )


def schedule_epsilon_pld(*, schedule: Schedule, delta: float, levels: int = 100) -> float:
    """The same by privacy loss distributions (dp-accounting): tight, for final figures.

    More than `levels` different noise multipliers are rounded down to so many: still an upper bound.
    """
    schedule = [Steps(*steps) for steps in schedule if steps[2]]
    if any(steps.noise_multiplier == 0 for steps in schedule):
        return math.inf
    accountant = dp_accounting().pld.PLDAccountant()
    for steps in _coarser(schedule, levels):
        accountant.compose(sampled_event(steps))
    return accountant.get_epsilon(delta) if schedule else 0.0


@cache  # clients with equal budgets ask the same
def noise_for(
    *, epsilon: float, delta: float, sampling_rate: float, steps: int, by: Callable[..., float] = schedule_epsilon
) -> float:
    """The least noise multiplier (to 1e-6 of it, from above) at which `steps` steps stay within (epsilon, delta);
    0 for an infinite epsilon. `by`: schedule_epsilon or schedule_epsilon_pld."""
    if math.isinf(epsilon):
        return 0.0
    target = min(epsilon, LARGEST_EPSILON)

    def excess(log_noise: float) -> float:
        noise = math.exp(log_noise)
        return by(schedule=[Steps(noise, sampling_rate, steps)], delta=delta) - target

    low = high = 0.0
    while excess(high) > 0:
        low, high = high, high + 1
    while excess(low) <= 0:
        low, high = low - 1, low
    return math.exp(brentq(excess, low, high, xtol=4e-7) + 8e-7)


def steps_for(
    *,
    epsilon: float,
    delta: float,
    sampling_rate: float,
    noise_multiplier: float,
    at_most: int = 2**40,
    by: Callable[..., float] = schedule_epsilon,
) -> int:
    """The largest number of steps within (epsilon, delta), up to `at_most`."""

    def within(count: int) -> bool:
        return by(schedule=[Steps(noise_multiplier, sampling_rate, count)], delta=delta) <= epsilon

    low, high = 0, 1  # `low` is within; widen until `high` is not
    while high <= at_most and within(high):
        low, high = high, 2 * high
    high = min(high, at_most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


def sampled_event(steps: Steps):
    """The steps as dp-accounting names them."""
    library = dp_accounting()
    one = library.PoissonSampledDpEvent(steps.sampling_rate, library.GaussianDpEvent(steps.noise_multiplier))
    return library.SelfComposedDpEvent(one, steps.count)


def dp_accounting():
    """Imported where used: it takes two seconds, which the stages without DP-SGD need not pay."""
    import dp_accounting
    import dp_accounting.pld

    return dp_accounting


def _coarser(schedule: Schedule, levels: int) -> list[Steps]:
    """Equal steps merged; noise multipliers rounded down to a geometric grid where there are more than `levels`."""
    noises = np.unique([steps.noise_multiplier for steps in schedule])
    if len(noises) > levels:
        grid = np.geomspace(noises[0], noises[-1], levels)
        grid[0], grid[-1] = noises[0], noises[-1]
        floor = {float(noise): float(grid[np.searchsorted(grid, noise, side="right") - 1]) for noise in noises}
        schedule = [Steps(floor[noise], rate, count) for noise, rate, count in schedule]
    merged: dict[tuple[float, float], int] = {}
    for noise, rate, count in schedule:
        merged[noise, rate] = merged.get((noise, rate), 0) + count
    return [Steps(*key, count) for key, count in merged.items()]
