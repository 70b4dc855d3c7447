"""Fits `joint_moments`: one `dp_moments` for several clients, from sums that nobody sees without noise.

Released: the two sums of `dp_moments`, over the records of all these clients. Each client adds its
two sums with a share of the noise, under the masks of a secure sum (privacy/secure_sums). So the
server sees the total alone, and one client's records are hidden by the noise of all.

**Sensitivity**: 1 in L2 norm for each sum. **Neighbours**: one record is added or removed at one
client. **Noise**: of the one budget that all have. A share has the variance sigma^2 / (K - t), where
K is the number of clients and t how many of them may collude with the server. Nobody may drop out.
One client alone adds the whole noise. **Accounted** in `plan_together`: mu against a dishonest
server and t clients, which is what every client's ledger enters. `trust` in the statement has epsilon
for each other number of colluding clients. Released in `fit_together`. All that follows is
post-processing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.config.generators import JointMoments
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.privacy.secure_sums import noise_shares, trust
from pipelines.privacy.secure_sums.in_process import Summation
from pipelines.privacy.secure_sums.noise_shares import SharePlan
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.statement import NOT_COVERED
from pipelines.synthesis import dp_moments
from pipelines.synthesis.base import HERE, Plan, Space, Where, stated

KNOWN_FAILURES = (
    f"{dp_moments.KNOWN_FAILURES}; one law for all its clients, which shows no client's own style"
)
# of the mechanism, in the ledger: raise it when the same parameters would release something else
VERSION = 1
IDENTITY = dp_moments.IDENTITY | Identity(
    consequences=frozenset({"clients", "honest_shares", "sigma_of_share", "trust"})
)


@dataclass(frozen=True)
class Group:
    """Says who makes the release together.

    Attributes:
        clients: K, how many clients.
        colluding: t, how many of them may collude with the server.
    """

    clients: int
    colluding: int


@dataclass(frozen=True, kw_only=True)
class JointPlan(Plan):
    """Holds all that was decided about a joint release.

    Attributes:
        shares: The noise of both sums, in shares.
    """

    shares: SharePlan


# a client that releases without others
ALONE = Group(clients=1, colluding=0)


def plan(settings: JointMoments, budget: Budget, space: Space) -> JointPlan:
    """Plans the release of one client alone, who shares no noise.

    Args:
        settings: The settings of `synthesis.joint_moments`.
        budget: The client's budget.
        space: What is public about the images.

    Raises:
        UserError: As `plan_together`.
    """
    return plan_together(settings, budget, space, ALONE)


def plan_together(settings: JointMoments, budget: Budget, space: Space, group: Group) -> JointPlan:
    """Plans the noise of both sums, in shares. No private record is read.

    Args:
        settings: The settings of `synthesis.joint_moments`.
        budget: The budget of each client, which the two sums spend whole.
        space: What is public about the images.
        group: Who makes the release together.

    Raises:
        UserError: Delta is too small for the lattice of the noise.
    """
    of_one = dp_moments.plan(settings, budget, space)
    shares = _shares(of_one, budget, group)
    details = dict(of_one.statement.details)
    del details["hyperparameters"]
    # of the group stands what follows from it
    del details["settings"]["colluding"]
    details |= {
        "lattice_steps_per_unit": shares.scale,
        "clients": group.clients,
        "colluding": group.colluding,
        "sigma_of_share": [shares.share(0), shares.share(1)],
        "honest_shares": shares.least_honest,
        "trust": _epsilons(shares),
    }
    statement = stated(
        "joint_moments (two Gaussian releases of class-wise DCT moments, of all its clients)",
        budget,
        details,
        trust=_trust(group) if budget.private else None,
        not_covered=(*NOT_COVERED, *_not_covered(group)),
    )
    together = "1 client alone" if group.clients == 1 else f"{group.clients} clients together"
    line = (
        f"joint_moments: 2 releases of {details['released_numbers']} numbers, {together}, noise "
        f"{_of_all(shares, 0):.3g} and {_of_all(shares, 1):.3g} at sensitivity 1"
    )
    return JointPlan(
        of_one.settings,
        space,
        statement,
        lines=(line, *filter(None, [statement.trust])),
        shares=shares,
    )


def fit(
    shard: Images, plan: JointPlan, noise: Noise, seed: int, where: Where = HERE
) -> dict[str, np.ndarray]:
    """Makes the release of one client alone, which is that of `dp_moments`.

    Args:
        shard: The client's private records.
        plan: The plan, from `plan`.
        noise: The noise source.
        seed: Not used, as in `dp_moments`.
        where: Not used.
    """
    return dp_moments.fit(shard, plan, noise, seed, where)


def fit_together(
    shards: Mapping[str, Images], plan: JointPlan, sums: Summation
) -> dict[str, np.ndarray]:
    """Makes the two sums over all clients, and turns them into the state of one generator.

    Args:
        shards: Each client's private records.
        plan: The plan, from `plan_together`.
        sums: Carries each client's vectors to their sum.

    Returns:
        The state, as `dp_moments.fit` returns it.

    Raises:
        UserError: There is no sum.
    """
    scale = plan.shares.scale
    released: list[np.ndarray] = []
    for number in range(len(sum_shapes(plan))):
        vectors = {}
        for client, shard in shards.items():
            vectors[client] = next_sum(shard, plan, scale, released)
        try:
            released.append(sums.total(number, vectors) / scale)
        except Refusal as refusal:
            raise UserError(f"The joint release has no sum: {refusal}") from None
    return joint_state(plan, released)


def joint_state(plan: JointPlan, released: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the state of the generator, from both sums with the noise of all clients.

    Args:
        plan: The plan, from `plan_together`.
        released: Both sums over all clients, in original units.
    """
    sigmas = (_of_all(plan.shares, 0), _of_all(plan.shares, 1))
    return dp_moments.state_of(plan, sigmas, released)


sum_shapes = dp_moments.sum_shapes
next_sum = dp_moments.next_sum
sample = dp_moments.sample


def _shares(of_one: Plan, budget: Budget, group: Group) -> SharePlan:
    """Returns the noise of both sums in shares, where nobody may drop out.

    Args:
        of_one: The plan of `dp_moments` for one client.
        budget: The budget.
        group: Who makes the release together.

    Raises:
        UserError: Delta is too small for the lattice of the noise.
    """
    details = of_one.statement.details
    try:
        return noise_shares.planned(
            budget,
            sigmas=tuple(details["sigma"]),
            draws=details["released_numbers"],
            clients=group.clients,
            threshold=group.clients,
            colluding=group.colluding,
        )
    except Refusal as refusal:
        raise UserError(str(refusal)) from None


def _of_all(shares: SharePlan, number: int) -> float:
    """Returns the deviation of all clients' noise together in a sum, in original units."""
    return shares.share(number) * shares.clients**0.5


def _epsilons(shares: SharePlan) -> dict[str, dict[str, float]]:
    """Returns epsilon by kind of server and number of colluding clients."""
    by_server: dict[str, dict[str, float]] = {}
    for row in trust.rows(shares, guarantee="formal"):
        by_server.setdefault(row["server"], {})[str(row["colluding"])] = row["epsilon"]
    return by_server


def _trust(group: Group) -> str | None:
    """Returns whom a client has to trust, in a sentence. One alone trusts nobody."""
    others = group.clients - 1
    if not others:
        return None
    if group.colluding == others:
        return f"This bound holds against the server and all {others} other clients together."
    return (
        f"This bound holds while at most {group.colluding} of the {group.clients} clients put what "
        "they know together, with the server or without it."
    )


def _not_covered(group: Group) -> tuple[str, ...]:
    """Returns what the statement of a joint release does not cover beside the usual."""
    if group.colluding == group.clients - 1:
        return ()
    return (f"what more than {group.colluding} of the {group.clients} clients know together",)
