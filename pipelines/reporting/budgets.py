"""What a method or a client spends, from the privacy statements of its releases."""

import math

from pipelines.privacy.accounting import LARGEST_EPSILON, compose, gdp_epsilon
from pipelines.privacy.gaussian import SLACK_SHARE

SHOWN = ("delta", "unit", "relation", "sampling", "accountant")  # beside every epsilon (DESIGN rule 1)
TOTAL_ACCOUNTANT = "Gaussian DP: root of the sum of the releases' mu squared; the lattices' slack is added to delta"


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
    """All of one client's releases in the same hands: those with a mu compose exactly, the others come on top.

    Returns:
        {"epsilon", "delta", "mu", "guarantee", "unit", "relation", "accountant"} of the releases with a mu, and
        "on_top": {"epsilon", "delta"} with the others added by basic composition, or None if there is no other.
    """
    gaussian = [statement for statement in statements if statement["mu"] is not None]
    others = [statement for statement in statements if statement["mu"] is None]
    mu = compose([float(statement["mu"]) for statement in gaussian])
    epsilon = gdp_epsilon(mu=mu, delta=delta * (1 - SLACK_SHARE))
    spent = min(1.0, max(delta, delta * (1 - SLACK_SHARE) + _slack(gaussian, epsilon)))
    formal = all(statement["guarantee"] == "formal" for statement in statements)
    return {
        "epsilon": epsilon,
        "delta": spent,
        "mu": mu,
        "guarantee": "formal" if formal else "none",
        "unit": "record",
        "relation": "add or remove one record",
        "accountant": TOTAL_ACCOUNTANT,
        "on_top": _on_top(epsilon, spent, others) if others else None,
    }


def _slack(statements: list[dict], epsilon: float) -> float:
    """delta for rounding to a lattice, at the total's epsilon.

    Each release holds it within SLACK_SHARE of its delta at LARGEST_EPSILON (privacy/gaussian.py); beyond that the
    same distance in total variation weighs (1 + e^epsilon) / (1 + e^LARGEST_EPSILON) times as much.
    """
    if math.isinf(epsilon):
        return 0.0
    weight = (1 + math.exp(epsilon)) / (1 + math.exp(LARGEST_EPSILON))
    return sum(SLACK_SHARE * statement["delta"] * weight for statement in statements)


def _on_top(epsilon: float, delta: float, others: list[dict]) -> dict:
    return {
        "epsilon": epsilon + sum(float(statement["epsilon"]) for statement in others),
        "delta": min(1.0, delta + sum(statement["delta"] for statement in others)),
        "accountant": "basic composition",
    }
