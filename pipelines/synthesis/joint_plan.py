"""Holds what was decided about a release that clients make together: who, which sums, which noise.

A joint release is a sequence of secure sums, of which later ones may look at earlier ones. Each client
adds to every sum what its records contribute, and a share of the noise (privacy/secure_sums). How many
sums follow may depend on what was released: then a plan has several courses, with one cost.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.errors import UserError
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Identity
from pipelines.privacy.secure_sums import noise_shares, trust
from pipelines.privacy.secure_sums.noise_shares import SharePlan
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.terms import least_threshold
from pipelines.privacy.statement import NOT_COVERED, Statement
from pipelines.synthesis.base import Plan, stated

# of the details that `facts` returns
IDENTITY = Identity(consequences=frozenset({"clients", "honest_shares", "trust"}))


@dataclass(frozen=True)
class Group:
    """Says who makes the release together.

    Attributes:
        clients: K, how many clients.
        colluding: t, how many of them may collude with the server.
        may_drop: How many of them may drop out before the end.
    """

    clients: int
    colluding: int
    may_drop: int = 0

    @property
    def threshold(self) -> int:
        """Returns s, the fewest clients of a sum."""
        return self.clients - self.may_drop

    @property
    def most_drops(self) -> int:
        """Returns how many may drop out at most, so that a server cannot lie about who did."""
        return self.clients - least_threshold(clients=self.clients, colluding=self.colluding)

    @property
    def excess(self) -> float:
        """Returns how many times the planned noise there is where nobody colludes or drops out."""
        return math.sqrt(self.clients / (self.threshold - self.colluding))


# a client that releases without others
ALONE = Group(clients=1, colluding=0)


@dataclass(frozen=True)
class Course:
    """Holds the sums of a release in their order.

    Attributes:
        shares: The noise of each sum, in shares.
        shapes: The shape of each sum.
    """

    shares: SharePlan
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class JointPlan(Plan):
    """Holds all that was decided about a joint release.

    Attributes:
        courses: The sums that there may be. All courses cost the same, have one lattice, and agree
            on the sums before the one that tells them apart.
    """

    courses: tuple[Course, ...]

    @property
    def shares(self) -> SharePlan:
        """Returns the noise of the first course, whose lattice and cost all have."""
        return self.courses[0].shares

    @property
    def scale(self) -> int:
        """Returns the lattice steps per unit of every sum."""
        return self.shares.scale

    def of_all_clients(self, total: np.ndarray, summands: int) -> np.ndarray:
        """Returns a total in original units, as if no client had dropped out.

        Sums over other clients then have one measure. It is post-processing, for who is left in a
        sum is no secret.

        Args:
            total: The sum with its noise, in lattice steps.
            summands: How many clients' vectors are in it.
        """
        return total / self.scale * (self.shares.clients / summands)


def only_course(plan: JointPlan, released: list[np.ndarray]) -> Course:
    """Returns the course of a plan that has one, whatever was released."""
    (course,) = plan.courses
    return course


def shared(
    budget: Budget,
    sigmas: tuple[float, ...],
    shapes: tuple[tuple[int, ...], ...],
    group: Group,
    coarsest: int = 1,
    records: int | None = None,
) -> Course:
    """Returns a course whose noise is planned in shares.

    Args:
        budget: The budget of the whole release.
        sigmas: The deviation of each sum, in original units, at sensitivity 1.
        shapes: The shape of each sum.
        group: Who makes the release together.
        coarsest: Lattice steps per unit, at least.
        records: The declared number of all clients' records, if each may add 1 to an entry.

    Raises:
        UserError: Delta is too small for the lattice of the noise, epsilon for the noise, or there
            are more records than an entry of 64 bits holds.
    """
    try:
        shares = noise_shares.planned(
            budget,
            sigmas=sigmas,
            draws=sum(int(np.prod(shape)) for shape in shapes),
            clients=group.clients,
            threshold=group.threshold,
            colluding=group.colluding,
            coarsest=coarsest,
        )
    except Refusal as refusal:
        raise UserError(str(refusal)) from None
    room = shares.clients * shares.bound // shares.scale
    if records is not None and records > room:
        raise UserError(
            f"A sum of this release holds at most {room} records of all clients, and {records} are "
            "declared. Let fewer clients release together, or ask for a smaller epsilon."
        )
    return Course(shares, shapes)


def of_all(shares: SharePlan, number: int, summands: int | None = None) -> float:
    """Returns the deviation of the noise of a sum that counts as one of all clients, in original units.

    Fewer shares of noise are in a sum of fewer clients, and `JointPlan.of_all_clients` scales it up.

    Args:
        shares: The noise in shares.
        number: Which sum it is.
        summands: How many clients' vectors are in it; None: all.
    """
    summands = summands or shares.clients
    return shares.share(number) * summands**0.5 * (shares.clients / summands)


def deviations(shares: SharePlan, summands: Sequence[int]) -> tuple[float, ...]:
    """Returns the deviation of the noise of each of the first sums, as `of_all`.

    Args:
        shares: The noise in shares.
        summands: How many clients' vectors are in each.
    """
    return tuple(of_all(shares, number, count) for number, count in enumerate(summands))


def facts(shares: SharePlan, group: Group) -> dict:
    """Returns what a statement's details say of a group, beside its shares of the noise.

    Args:
        shares: The noise in shares.
        group: Who makes the release together.
    """
    drops = {"may_drop": group.may_drop} if group.may_drop else {}
    return {
        "clients": group.clients,
        "colluding": group.colluding,
        **drops,
        "honest_shares": shares.least_honest,
        "trust": _epsilons(shares),
    }


def details_of(of_one: Plan) -> dict:
    """Returns the details of a client's own release, but for what tells of no joint one.

    What follows from the numbers of clients that collude or drop out stands in `facts`.

    Args:
        of_one: The plan of the same release by one client.
    """
    details = dict(of_one.statement.details)
    del details["hyperparameters"]
    settings = dict(details["settings"])
    del settings["colluding"]
    settings.pop("may_drop", None)
    return details | {"settings": settings}


def joint_statement(
    mechanism: str,
    budget: Budget,
    details: dict,
    group: Group,
    usual: tuple[str, ...] = NOT_COVERED,
    **others: str,
) -> Statement:
    """Returns the statement of a joint release, which says whom its clients trust.

    Args:
        mechanism: The mechanism in words.
        budget: The budget of each client.
        details: The details of the release.
        group: Who makes the release together.
        usual: What the statement of one client's release does not cover.
        **others: As for `base.stated`.
    """
    return stated(
        mechanism,
        budget,
        details,
        trust=whom_to_trust(group) if budget.private else None,
        not_covered=not_covered(group, usual),
        **others,
    )


def lines(line: str, statement: Statement) -> tuple[str, ...]:
    """Returns what is printed before a release: what it is, and whom its clients trust."""
    return (line, *filter(None, [statement.trust]))


def whom_to_trust(group: Group) -> str | None:
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


def not_covered(group: Group, usual: tuple[str, ...] = NOT_COVERED) -> tuple[str, ...]:
    """Returns what the statement of a joint release does not cover.

    Args:
        group: Who makes the release together.
        usual: What that of one client's release does not cover.
    """
    if group.colluding == group.clients - 1:
        return usual
    return (
        *usual,
        f"what more than {group.colluding} of the {group.clients} clients know together",
    )


def together(group: Group) -> str:
    """Returns who releases, as the plan's line says it."""
    if group.clients == 1:
        return "1 client alone"
    drops = f" (of whom {group.may_drop} may drop out)" if group.may_drop else ""
    return f"{group.clients} clients together{drops}"


def _epsilons(shares: SharePlan) -> dict[str, dict[str, float]]:
    """Returns epsilon by kind of server and number of colluding clients."""
    by_server: dict[str, dict[str, float]] = {}
    for row in trust.rows(shares, guarantee="formal"):
        by_server.setdefault(row["server"], {})[str(row["colluding"])] = row["epsilon"]
    return by_server
