"""Everything a client released, together."""

import math
from functools import cache

from pipelines.privacy.accounting.gdp import LARGEST_EPSILON, compose, gdp_epsilon
from pipelines.privacy.accounting.renyi import ORDERS, rdp_epsilon
from pipelines.privacy.accounting.schedules import Steps, dp_accounting, sampled_event, schedule_rdp


def total_epsilon(*, costs: list[dict], delta: float) -> float:
    """Epsilon at `delta` of several releases of the same records together.

    A cost is {"kind": "gaussian", "mu"}, {"kind": "sampled_gaussian", "schedule": [[noise multiplier, rate, steps]]},
    {"kind": "renyi", "order", "rdp"} for a filtered run, or {"kind": "none"} for a release without privacy. Gaussian
    ones alone compose exactly; with sampled ones among them the privacy loss distributions do (dp-accounting); with a
    filtered one among them, the Rényi curves up to its order. Beyond LARGEST_EPSILON, for which the lattices of
    discrete noise were cut, no claim is made: infinity.
    """
    kinds = {
        kind: [cost for cost in costs if cost["kind"] == kind]
        for kind in ("gaussian", "sampled_gaussian", "renyi")
    }
    if len(costs) > sum(map(len, kinds.values())):
        return math.inf
    mu = compose([cost["mu"] for cost in kinds["gaussian"]])
    schedule = [
        Steps(*steps)
        for cost in kinds["sampled_gaussian"]
        for steps in cost["schedule"]
        if steps[2]
    ]
    if kinds["renyi"]:
        total = _by_renyi(kinds["renyi"], mu, schedule, delta)
    elif schedule:
        total = _by_loss_distributions(mu, tuple(schedule), delta)
    else:
        total = gdp_epsilon(mu=mu, delta=delta)
    return total if total <= LARGEST_EPSILON else math.inf


def _by_renyi(filtered: list[dict], mu: float, schedule: list[Steps], delta: float) -> float:
    """rho is monotone in the order: a filter's budget holds at every order up to its own."""
    largest, rdp = min(cost["order"] for cost in filtered), sum(cost["rdp"] for cost in filtered)
    return min(
        rdp_epsilon(
            rdp=rdp + order * mu * mu / 2 + schedule_rdp(schedule=schedule, order=order),
            order=order,
            delta=delta,
        )
        for order in {largest, *(order for order in ORDERS if order < largest)}
    )


@cache  # seconds each; clients with equal budgets ask the same
def _by_loss_distributions(mu: float, schedule: tuple[Steps, ...], delta: float) -> float:
    accountant = dp_accounting().pld.PLDAccountant()
    if mu > 0:
        accountant.compose(dp_accounting().GaussianDpEvent(1 / mu))
    for steps in schedule:
        accountant.compose(sampled_event(steps))
    return accountant.get_epsilon(delta)
