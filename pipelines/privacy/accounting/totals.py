"""Composes everything that a client released.

>>> costs = [{"kind": "gaussian", "mu": 0.3}, {"kind": "gaussian", "mu": 0.4}]
>>> round(total_epsilon(costs=costs, delta=1e-5), 3)
1.993
>>> total_epsilon(costs=[*costs, {"kind": "none"}], delta=1e-5)
inf
"""

import math

from pipelines.privacy.accounting.best_order import least_epsilon
from pipelines.privacy.accounting.gdp import LARGEST_EPSILON, compose, gdp_epsilon
from pipelines.privacy.accounting.loss_distributions import sampled_epsilon
from pipelines.privacy.accounting.renyi import ORDERS, rdp_epsilon
from pipelines.privacy.accounting.schedules import Steps, schedule_rdp


def total_epsilon(*, costs: list[dict], delta: float) -> float:
    """Returns the epsilon of several releases of the same records together.

    Gaussian releases alone compose exactly. With sampled ones among them the privacy loss
    distributions do (dp-accounting); with a filtered one among them, the Rényi curves up to its
    order. Beyond LARGEST_EPSILON, for which the lattices of discrete noise were cut, no claim is
    made: infinity.

    Args:
        costs: A cost is {"kind": "gaussian", "mu"}, {"kind": "sampled_gaussian", "schedule":
            [[noise multiplier, rate, steps]]}, {"kind": "renyi", "order", "rdp"} for a filtered
            run, or {"kind": "none"} for a release without privacy.
        delta: The delta of the guarantee.
    """
    mus = []
    counts: dict[tuple[float, float], int] = {}
    filtered = []
    for cost in costs:
        if cost["kind"] == "gaussian":
            mus.append(cost["mu"])
        elif cost["kind"] == "sampled_gaussian":
            # equal steps of several runs are composed as those of one
            for noise, rate, count in cost["schedule"]:
                counts[noise, rate] = counts.get((noise, rate), 0) + count
        elif cost["kind"] == "renyi":
            filtered.append(cost)
        else:
            return math.inf
    mu = compose(mus)
    schedule = [Steps(*step, count) for step, count in counts.items() if count]
    if filtered:
        total = _by_renyi(filtered, mu, schedule, delta)
    elif schedule:
        total = sampled_epsilon(schedule=tuple(schedule), delta=delta, mu=mu)
    else:
        total = gdp_epsilon(mu=mu, delta=delta)
    return total if total <= LARGEST_EPSILON else math.inf


def _by_renyi(filtered: list[dict], mu: float, schedule: list[Steps], delta: float) -> float:
    """Returns the least epsilon over the orders up to the filters' own.

    rho is monotone in the order: a filter's budget holds at every order up to its own.
    """
    largest = min(cost["order"] for cost in filtered)
    rdp = sum(cost["rdp"] for cost in filtered)

    def epsilon(order: float) -> float:
        gaussian = rdp + order * mu * mu / 2
        total = gaussian + schedule_rdp(schedule=schedule, order=order)
        return rdp_epsilon(rdp=total, order=order, delta=delta)

    orders = [order for order in ORDERS if order < largest]
    return least_epsilon(epsilon, [*orders, largest])
