"""States the epsilon of a joint release for each number of clients that collude with the server.

One number without its trust would mislead. Epsilon follows from the shares of noise that the others
do not know: at least s - c of a sum over s clients, if c collude.

A dishonest server may lie about who dropped out. With more than 2 s - K - 1 colluding clients it can
then open a single client's masked vector, and meets that client's share of noise alone. A server
that follows the protocol needs s of them. A client's own share alone is the last row in each case.

>>> from pipelines.privacy.discrete_gaussian import Budget
>>> from pipelines.privacy.secure_sums.noise_shares import planned
>>> budget = Budget(epsilon=1.0, delta=1e-5)
>>> plan = planned(
...     budget, sigmas=(budget.sigma(1.0),), draws=10, clients=4, threshold=4, colluding=2
... )
>>> for row in rows(plan, guarantee="formal"):
...     print(row["server"], row["colluding"], row["shares_of_noise"], round(row["epsilon"], 2))
dishonest 0 4 0.68
dishonest 1 3 0.8
dishonest 2 2 1.0
dishonest 3 1 1.47
follows the protocol 0 4 0.68
follows the protocol 1 3 0.8
follows the protocol 2 2 1.0
follows the protocol 3 1 1.47
"""

import math

from pipelines.privacy.secure_sums.noise_shares import SharePlan
from pipelines.privacy.secure_sums.terms import most_colluding

DISHONEST = "dishonest"
FOLLOWS = "follows the protocol"


def rows(plan: SharePlan, *, guarantee: str) -> list[dict]:
    """Returns a row for each kind of server and each number of colluding clients, 0 to K - 1.

    Args:
        plan: The plan of the release.
        guarantee: That of the source of noise, `formal` or `none`. Without one epsilon is infinite.

    Returns:
        Mappings with `server`, `colluding`, `planned` (whether this is the case that the noise was
        planned for), `single_vectors_hidden`, `shares_of_noise`, `epsilon`, `delta`, `guarantee`
        and `statement`, a sentence.
    """
    found = []
    for server in (DISHONEST, FOLLOWS):
        for colluding in range(plan.clients):
            found.append(_row(plan, server, colluding, guarantee))
    return found


def honest_shares(plan: SharePlan, *, server: str, colluding: int) -> int:
    """Returns how many shares of noise hide a record, at least.

    Args:
        plan: The plan of the release.
        server: DISHONEST or FOLLOWS.
        colluding: How many clients tell the server all that they know.
    """
    if not _is_hidden(plan, server, colluding):
        return 1
    return plan.threshold - colluding


def _is_hidden(plan: SharePlan, server: str, colluding: int) -> bool:
    """Returns whether the masks hide the vectors of the other clients."""
    if server == DISHONEST:
        return colluding <= most_colluding(clients=plan.clients, threshold=plan.threshold)
    return colluding < plan.threshold


def _row(plan: SharePlan, server: str, colluding: int, guarantee: str) -> dict:
    """Returns the row of one case."""
    shares = honest_shares(plan, server=server, colluding=colluding)
    formal = guarantee == "formal" and plan.budget.private
    epsilon = plan.epsilon(honest=shares) if formal else math.inf
    hidden = _is_hidden(plan, server, colluding)
    return {
        "server": server,
        "colluding": colluding,
        "planned": server == DISHONEST and colluding == plan.colluding,
        "single_vectors_hidden": hidden,
        "shares_of_noise": shares,
        "epsilon": epsilon,
        "delta": plan.budget.delta,
        "guarantee": "formal" if math.isfinite(epsilon) else "none",
        "statement": _sentence(plan, server, colluding, epsilon, hidden),
    }


def _sentence(plan: SharePlan, server: str, colluding: int, epsilon: float, hidden: bool) -> str:
    """Returns the guarantee of one case in words."""
    against = {
        DISHONEST: "a dishonest server",
        FOLLOWS: "a server that follows the protocol, and readers of the sum,",
    }[server]
    which = "which sees the sum alone" if hidden else "which may see a single client's noisy vector"
    if math.isinf(epsilon):
        return (
            f"NO PRIVACY GUARANTEE against {against} with {colluding} colluding clients, {which}."
        )
    return (
        f"Against {against} with {colluding} colluding clients, {which}: one record of an honest "
        f"client has ({epsilon:.4g}, {plan.budget.delta:g})-differential privacy (add or remove one "
        "record). Other releases of the same client compose with it."
    )
