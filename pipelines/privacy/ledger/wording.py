"""Says in words what releases come to: why a total is infinite, and which releases make it so."""

import math

from pipelines.privacy.accounting import LARGEST_EPSILON, total_epsilon

VOID = "infinity (a release without a guarantee is among them)"
BEYOND = f"more than {LARGEST_EPSILON:g} (beyond which nothing is claimed)"


def rounded_up(epsilon: float) -> str:
    """Returns an epsilon with three decimals, which is never below it.

    >>> rounded_up(5.655448), rounded_up(20.0), rounded_up(math.inf)
    ('5.656', '20.000', 'inf')
    """
    if math.isinf(epsilon):
        return "inf"
    return f"{math.ceil(epsilon * 1000 - 1e-6) / 1000:.3f}"


def total(epsilon: float, costs: list[dict]) -> str:
    """Returns a total in words, to stand after the word epsilon.

    Args:
        epsilon: The total.
        costs: Its costs, which tell why an infinite one is infinite.
    """
    if math.isfinite(epsilon):
        return rounded_up(epsilon)
    return VOID if any(cost["kind"] == "none" for cost in costs) else BEYOND


def culprits(releases: list[tuple[str, dict]], delta: float) -> str:
    """Returns a sentence on what makes a total infinite.

    Args:
        releases: The name and cost of each, in the order in which they were entered.
        delta: The delta of the total.
    """
    void = [name for name, cost in releases if cost["kind"] == "none"]
    if void:
        return (
            f"Without a guarantee: {', '.join(void)}. No epsilon holds for all releases together."
        )
    costs = [cost for _, cost in releases]
    passed = _first_beyond(costs, delta)
    name = releases[passed][0]
    if not passed:
        return f"{name} alone passes {LARGEST_EPSILON:g}, and each later one adds to it."
    before = total_epsilon(costs=costs[:passed], delta=delta)
    return (
        f"{name} brought it above {LARGEST_EPSILON:g}, as number {passed + 1} of {len(costs)}: "
        f"those before it come to {rounded_up(before)}. What each release says of itself still holds."
    )


def _first_beyond(costs: list[dict], delta: float) -> int:
    """Returns the position of the cost with which the total becomes infinite.

    It halves the range, because a total of sampled releases takes seconds. That is allowed, because
    a total never falls when a cost is added.
    """
    finite = -1
    infinite = len(costs) - 1
    while infinite - finite > 1:
        middle = (finite + infinite) // 2
        if math.isinf(total_epsilon(costs=costs[: middle + 1], delta=delta)):
            infinite = middle
        else:
            finite = middle
    return infinite
