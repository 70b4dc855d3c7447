"""Says what a method or a client spends, from the privacy statements of its releases."""

import math

from pipelines.privacy.accounting import LARGEST_EPSILON, total_epsilon

# These fields stand beside every epsilon.
SHOWN = (
    "delta",
    "unit",
    "relation",
    "sampling",
    "accountant",
)
TOTAL_ACCOUNTANT = (
    "exact Gaussian DP; with sampled releases among them, privacy loss distributions; "
    "with filtered ones, Renyi DP"
)
BEYOND = (
    f"each release alone; together beyond epsilon {LARGEST_EPSILON:g}, where nothing is claimed"
)


def of_method(method: str, run: dict) -> dict[str, dict]:
    """Returns the privacy statements of what a method releases, by client.

    Args:
        method: Name of the method, such as `pppfl/datalens` or `dpsgd`.
        run: What `collect.read` returned.

    Returns:
        {client: statement}; empty if nothing leaves a client.
    """
    generator = method.partition("/")[2]
    if not generator:
        return run["results"][method].get("statements", {})
    return {client: cards[generator]["privacy"] for client, cards in run["cards"].items()}


def costliest(statements: dict[str, dict]) -> dict:
    """Returns what must stand beside the largest epsilon: whose it is, and the fields of SHOWN.

    Example:
        >>> rest = {"unit": "record", "relation": "add or remove one record", "sampling": "none"}
        >>> rest["accountant"] = "exact Gaussian DP"
        >>> row = costliest({"a": {"epsilon": 10.0, "delta": 1e-5, **rest},
        ...                  "b": {"epsilon": 3.0, "delta": 1e-6, **rest}})
        >>> row["epsilon_max_client"], row["delta"]
        ('a', 1e-05)
    """
    if not statements:
        return {}
    client = max(statements, key=lambda name: float(statements[name]["epsilon"]))
    shown = {field: statements[client][field] for field in SHOWN}
    return {"epsilon_max_client": client, **shown}


def total(statements: list[dict], delta: float) -> dict:
    """Returns what all of one client's releases of this run cost together, in the same hands.

    The costs are those that the client's ledger holds.

    Args:
        statements: One for each release: anything with a "cost", as the ledger writes it, and
            perhaps "trust".
        delta: Delta of the total.

    Returns:
        {"epsilon", "delta", "guarantee", "unit", "relation", "accountant", "trust"}. If a release
        has no guarantee, epsilon is infinite and the guarantee is "none". If the total passes
        LARGEST_EPSILON, epsilon is infinite and the guarantee is BEYOND. `trust` has each sentence
        that says whom a release trusts.

    Example:
        >>> release = {"cost": {"kind": "gaussian", "mu": 1.0}}
        >>> both = total([release, release], delta=1e-5)
        >>> round(both["epsilon"], 2), both["guarantee"]
        (6.57, 'formal')
    """
    costs = [statement["cost"] for statement in statements]
    epsilon = total_epsilon(costs=costs, delta=delta)
    if math.isfinite(epsilon):
        guarantee = "formal"
    elif any(cost["kind"] == "none" for cost in costs):
        guarantee = "none"
    else:
        guarantee = BEYOND
    return {
        "epsilon": epsilon,
        "delta": delta,
        "guarantee": guarantee,
        "unit": "record",
        "relation": "add or remove one record",
        "accountant": TOTAL_ACCOUNTANT,
        "trust": sorted({one["trust"] for one in statements if one.get("trust")}),
    }
