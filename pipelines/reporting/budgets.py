"""What a method or a client spends, from the privacy statements of its releases."""

import math

from pipelines.privacy.accounting import LARGEST_EPSILON, total_epsilon

SHOWN = (
    "delta",
    "unit",
    "relation",
    "sampling",
    "accountant",
)  # beside every epsilon (DESIGN rule 1)
TOTAL_ACCOUNTANT = (
    "exact Gaussian DP; with sampled releases among them, privacy loss distributions; "
    "with filtered ones, Renyi DP"
)
BEYOND = (
    f"each release alone; together beyond epsilon {LARGEST_EPSILON:g}, where nothing is claimed"
)


def of_method(method: str, run: dict) -> dict[str, dict]:
    """{client: statement} of what a method releases; empty when nothing leaves a client."""
    generator = method.partition("/")[2]
    if generator:
        return {client: cards[generator]["privacy"] for client, cards in run["cards"].items()}
    return run["results"][method].get("statements", {})


def costliest(statements: dict[str, dict]) -> dict:
    """What must stand beside the largest epsilon: the fields of SHOWN and whose it is."""
    if not statements:
        return {}
    client = max(statements, key=lambda name: float(statements[name]["epsilon"]))
    return {"epsilon_max_client": client, **{field: statements[client][field] for field in SHOWN}}


def total(statements: list[dict], delta: float) -> dict:
    """All of one client's releases of this run in the same hands, from the costs that its ledger holds.

    Returns:
        {"epsilon", "delta", "guarantee", "unit", "relation", "accountant"}; epsilon is infinite where a release has no
        guarantee, and nothing is guaranteed, or where the total passes LARGEST_EPSILON, and the guarantee is BEYOND.
    """
    costs = [statement["cost"] for statement in statements]
    epsilon = total_epsilon(costs=costs, delta=delta)
    void = "none" if any(cost["kind"] == "none" for cost in costs) else BEYOND
    return {
        "epsilon": epsilon,
        "delta": delta,
        "guarantee": "formal" if math.isfinite(epsilon) else void,
        "unit": "record",
        "relation": "add or remove one record",
        "accountant": TOTAL_ACCOUNTANT,
    }
