"""Finds how much noise, or how many steps, a budget allows for Poisson-sampled Gaussian steps.

Every search holds a schedule within (epsilon, delta), and errs on the side of more noise.

>>> schedule = (Steps(noise_multiplier=1.0, sampling_rate=0.01, count=1000),)
>>> scale = scale_for(epsilon=1.0, delta=1e-5, schedule=schedule)
>>> round(scale, 4)
1.5131
"""

import math
from collections.abc import Callable
from functools import cache, partial

from scipy.optimize import brentq

from pipelines.privacy.accounting.gdp import LARGEST_EPSILON
from pipelines.privacy.accounting.schedules import Schedule, Steps, schedule_epsilon


# clients with equal budgets need the same figure
@cache
def scale_for(
    *,
    epsilon: float,
    delta: float,
    schedule: tuple[Steps, ...],
    before: tuple[Steps, ...] = (),
    by: Callable[..., float] = schedule_epsilon,
) -> float:
    """Returns the least factor on a schedule's noise multipliers that keeps it within a budget.

    The factor is found to 1e-6 of it, from above. It is 0 for an infinite epsilon.

    Args:
        epsilon, delta: The budget, which also pays for `before`.
        schedule: The steps, whose noise multipliers are scaled.
        before: Steps that were taken before, whose noise is fixed.
        by: One of the functions `schedule_epsilon...`.

    Raises:
        ValueError: `before` alone spends all.
    """
    if math.isinf(epsilon):
        return 0.0
    target = min(epsilon, LARGEST_EPSILON)
    if before and by(schedule=before, delta=delta) >= target:
        raise ValueError(f"What was spent before leaves nothing of epsilon {target:g}.")

    def excess(log_factor: float) -> float:
        scaled = list(before)
        for steps in schedule:
            noise_multiplier = steps.noise_multiplier * math.exp(log_factor)
            scaled.append(steps._replace(noise_multiplier=noise_multiplier))
        return by(schedule=scaled, delta=delta) - target

    # widen until the root lies between `low` and `high`
    low = high = 0.0
    while excess(high) > 0:
        low = high
        high = high + 1
    while excess(low) <= 0:
        high = low
        low = low - 1
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
    """Returns the largest number of equal steps within a budget.

    Args:
        epsilon, delta: The budget.
        sampling_rate: The probability of a record to be in a lot.
        noise_multiplier: Noise standard deviation over sensitivity.
        at_most: The largest number that is of interest.
        by: One of the functions `schedule_epsilon...`.
    """
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
    """Returns the largest number of steps within a budget.

    Args:
        epsilon, delta: The budget.
        first: Returns the schedule of the first n steps.
        at_most: The largest number that is of interest.
        by: One of the functions `schedule_epsilon...`.
    """
    return largest(lambda count: by(schedule=first(count), delta=delta) <= epsilon, at_most)


def largest(within: Callable[[int], bool], at_most: int) -> int:
    """Returns the largest count up to `at_most` that is `within`, as are all smaller ones.

    >>> largest(lambda count: count**2 <= 50, at_most=1000)
    7
    >>> largest(lambda count: False, at_most=1000)
    0
    """
    low = 0
    high = 1
    # `low` is within; widen until `high` is not
    while high <= at_most and within(high):
        low = high
        high = 2 * high
    high = min(high, at_most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if within(middle):
            low = middle
        else:
            high = middle
    return low
