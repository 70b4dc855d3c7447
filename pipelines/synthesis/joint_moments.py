"""Fits `joint_moments`: one `dp_moments` for several clients, from sums that nobody sees without noise.

Released: the two sums of `dp_moments`, over the records of all these clients. Each client adds its
two sums with a share of the noise, under the masks of a secure sum (privacy/secure_sums). So the
server sees the total alone, and one client's records are hidden by the noise of all.

**Sensitivity**: 1 in L2 norm for each sum. **Neighbours**: one record is added or removed at one
client. **Noise**: of the one budget that all have. A share has the variance sigma^2 / (s - t), where
s is the fewest clients of a sum and t how many of them may collude with the server. One client alone
adds the whole noise. **Accounted** in `plan_together`: mu against a dishonest
server and t clients, which is what every client's ledger enters. `trust` in the statement has epsilon
for each other number of colluding clients. Released in `joint_fit.fit_together`, or by the members of
a network. All that follows is post-processing.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from pipelines.config.generators import JointMoments
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.synthesis import dp_moments, joint_plan
from pipelines.synthesis.base import HERE, Space, Where
from pipelines.synthesis.joint_fit import Contribution, Member
from pipelines.synthesis.joint_plan import ALONE, Group, JointPlan

KNOWN_FAILURES = (
    f"{dp_moments.KNOWN_FAILURES}; one law for all its clients, which shows no client's own style"
)
# of the mechanism, in the ledger: raise it when the same parameters would release something else
VERSION = 1
IDENTITY = (
    dp_moments.IDENTITY
    | joint_plan.IDENTITY
    # the settings hold what follows from the signal
    | Identity(consequences=frozenset({"sigma_of_share", "signal"}))
)
# what `_signal` returns
LOW = "low"
USUAL = "usual"
# all that is random is the noise
ONE_SEED = False


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
        UserError: As `joint_plan.shared`.
    """
    signal = _signal(settings, budget, space, group)
    of_one = dp_moments.plan(_at(signal, settings), budget, space)
    details = joint_plan.details_of(of_one)
    del details["settings"]["low_signal"]
    if signal:
        details["signal"] = signal
    course = joint_plan.shared(
        budget,
        tuple(details["sigma"]),
        dp_moments.sum_shapes(of_one),
        group,
        records=space.records,
    )
    shares = course.shares
    details |= {
        "lattice_steps_per_unit": shares.scale,
        "sigma_of_share": [shares.share(0), shares.share(1)],
        **joint_plan.facts(shares, group),
    }
    statement = joint_plan.joint_statement(
        "joint_moments (two Gaussian releases of class-wise DCT moments, of all its clients)",
        budget,
        details,
        group,
    )
    noise = [joint_plan.of_all(shares, number) for number in (0, 1)]
    line = (
        f"joint_moments: 2 releases of {details['released_numbers']} numbers, "
        f"{joint_plan.together(group)}, noise {noise[0]:.3g} and {noise[1]:.3g} at sensitivity 1"
    )
    return JointPlan(
        of_one.settings,
        space,
        statement,
        lines=joint_plan.lines(line, statement),
        courses=(course,),
    )


def _signal(settings: JointMoments, budget: Budget, space: Space, group: Group) -> str | None:
    """Returns LOW or USUAL, from public numbers.

    It is None where no settings are for a low signal, or where a number of records is not declared.
    """
    if not settings.low_signal or space.records is None:
        return None
    signal = budget.mu * space.records / group.excess if budget.private else math.inf
    return LOW if signal < settings.low_signal.below else USUAL


def _at(signal: str | None, settings: JointMoments) -> JointMoments:
    """Returns the settings for a signal. Where it is None, `low_epsilon` counts."""
    changes = {"low_signal": None}
    if signal:
        changes["low_epsilon"] = None
    if signal == LOW:
        changes |= settings.low_signal.model_dump(exclude={"below"})
    return settings.model_copy(update=changes)


def fit(
    shard: Images, plan: JointPlan, noise: Noise, seed: int, where: Where = HERE
) -> dict[str, np.ndarray]:
    """Makes the release of one client alone, as `dp_moments` does with the settings of this plan.

    Args:
        shard: The client's private records.
        plan: The plan, from `plan`.
        noise: The noise source.
        seed: Not used, as in `dp_moments`.
        where: Not used.
    """
    return dp_moments.fit(shard, plan, noise, seed, where)


@contextmanager
def contribution(member: Member, plan: JointPlan) -> Iterator[Contribution]:
    """Yields a client's part of the release (`joint_fit`).

    Args:
        member: The client.
        plan: The plan, from `plan_together`.
    """
    yield partial(dp_moments.next_sum, member.shard, plan, plan.scale)


def joint_state(
    plan: JointPlan, released: Sequence[np.ndarray], summands: Sequence[int], member: Member
) -> dict[str, np.ndarray]:
    """Returns the state of the generator, from both sums with the noise of all clients.

    Args:
        plan: The plan, from `plan_together`.
        released: Both sums over all clients, in original units.
        summands: How many clients' vectors are in each.
        member: Not used.
    """
    return dp_moments.state_of(plan, joint_plan.deviations(plan.shares, summands), released)


course = joint_plan.only_course
sample = dp_moments.sample
