"""Poisson-sampled Gaussian steps in number, each with its own noise and rate: epsilon, and calibration both ways.

A schedule is fixed in advance or follows from public data; for noise chosen from private outcomes see filters.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from pipelines.privacy.accounting.gdp import LARGEST_EPSILON, compose, gdp_epsilon
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
    return _least(tuple(map(tuple, schedule)), delta, convert, tuple(orders))


@lru_cache(
    maxsize=64
)  # clients of a round have mostly taken the same steps, and each asks after each round
def _least(schedule: Schedule, delta: float, convert, orders: tuple[float, ...]) -> float:
    return min(
        rdp_epsilon(
            rdp=schedule_rdp(schedule=schedule, order=order),
            order=order,
            delta=delta,
            convert=convert,
        )
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


def schedule_epsilon_gdp(*, schedule: Schedule, delta: float) -> float:
    """The same of steps that take all records, exactly.

    Raises:
        ValueError: one of them samples.
    """
    if any(steps.sampling_rate < 1 for steps in schedule):
        raise ValueError("Gaussian DP is exact for steps without sampling alone.")
    if any(
        steps.noise_multiplier * steps.noise_multiplier == 0 and steps.count for steps in schedule
    ):
        return math.inf
    mu = compose(
        [math.sqrt(steps.count) / steps.noise_multiplier for steps in schedule if steps.count]
    )
    return gdp_epsilon(mu=mu, delta=delta)


@cache  # clients with equal budgets ask the same
def scale_for(
    *,
    epsilon: float,
    delta: float,
    schedule: tuple[Steps, ...],
    before: tuple[Steps, ...] = (),
    by: Callable[..., float] = schedule_epsilon,
) -> float:
    """The least factor (to 1e-6 of it, from above) on a schedule's noise multipliers at which it stays, with what was
    spent `before`, within (epsilon, delta); 0 for an infinite epsilon. `by`: one of the schedule_epsilons.

    Raises:
        ValueError: `before` alone spends all.
    """
    if math.isinf(epsilon):
        return 0.0
    target = min(epsilon, LARGEST_EPSILON)
    if before and by(schedule=before, delta=delta) >= target:
        raise ValueError(f"What was spent before leaves nothing of epsilon {target:g}.")

    def excess(log_factor: float) -> float:
        scaled = [
            steps._replace(noise_multiplier=steps.noise_multiplier * math.exp(log_factor))
            for steps in schedule
        ]
        return by(schedule=[*before, *scaled], delta=delta) - target

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
    """`most_steps` of equal ones."""
    equal = partial(Steps, noise_multiplier, sampling_rate)
    return most_steps(
        epsilon=epsilon, delta=delta, first=lambda count: [equal(count)], at_most=at_most, by=by
    )


def most_steps(
    *,
    epsilon: float,
    delta: float,
    first: Callable[[int], Schedule],
    at_most: int,
    by: Callable[..., float] = schedule_epsilon,
) -> int:
    """The largest number of steps, up to `at_most`, within (epsilon, delta). first: the schedule of the first n."""
    return largest(lambda count: by(schedule=first(count), delta=delta) <= epsilon, at_most)


def largest(within: Callable[[int], bool], at_most: int) -> int:
    """The largest count up to `at_most` that is `within`, as are all smaller ones; 0 where none is."""
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
    one = library.PoissonSampledDpEvent(
        steps.sampling_rate, library.GaussianDpEvent(steps.noise_multiplier)
    )
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
        floor = {
            float(noise): float(grid[np.searchsorted(grid, noise, side="right") - 1])
            for noise in noises
        }
        schedule = [Steps(floor[noise], rate, count) for noise, rate, count in schedule]
    merged: dict[tuple[float, float], int] = {}
    for noise, rate, count in schedule:
        merged[noise, rate] = merged.get((noise, rate), 0) + count
    return [Steps(*key, count) for key, count in merged.items()]
