"""Fits `joint_head`: one `dp_head` for several clients, from sums that nobody sees without noise.

Released: the sums of `dp_head` over the records of all these clients. They are two sums of moments, the
number of records, and T sums of clipped gradients. Each client adds its part of every sum with a share
of the noise, under the masks of a secure sum (privacy/secure_sums).

**Sensitivity**: 1 in L2 norm for each sum, at any means, weights and number that others say.
**Neighbours**: one record is added or removed at one client. **Noise**: of the one budget that all
have. A share has the variance sigma^2 / (s - t). s is the fewest clients of a sum, and t how many of
them may collude with the server. T follows from the noisy number of records, and each of the T sums has
the T-th part of what the steps may spend. So mu is the same for every T.
**Accounted** in `plan_together`, which every client's ledger enters. Released in
`joint_fit.fit_together`, or by the members of a network. All that follows is post-processing.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipelines.config.generators import JointHead
from pipelines.config.heads import HeadSchedule
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.discrete_gaussian import Budget, count_on_lattice
from pipelines.privacy.lattice_gradients import COARSEST, Inputs, gradient_sum
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.synthesis import dp_head, dp_moments, joint_plan
from pipelines.synthesis.base import HERE, Plan, Space, Where
from pipelines.synthesis.joint_fit import Contribution, Member
from pipelines.synthesis.joint_plan import ALONE, Course, Group, JointPlan
from pipelines.training import linear_head
from pipelines.training.linear_head import LEAST_COUNT, Descent

KNOWN_FAILURES = dp_head.KNOWN_FAILURES
# of the mechanism, in the ledger: raise it when the same parameters would release something else
VERSION = 1
IDENTITY = (
    dp_head.IDENTITY | joint_plan.IDENTITY | Identity(consequences=frozenset({"share_of_noise"}))
)
# all that is random is the noise
ONE_SEED = False


@dataclass(frozen=True, kw_only=True)
class HeadPlan(JointPlan):
    """Holds all that was decided about a joint head. It has a course for each number T of steps.

    Attributes:
        moments: The plan of the images, of which the two sums come first; None: there are none.
    """

    moments: Plan | None

    @property
    def place_of_count(self) -> int:
        """Returns which sum is the number of records. All sums after it are steps."""
        return len(dp_moments.sum_shapes(self.moments)) if self.moments else 0

    def steps_of(self, course: Course) -> int:
        """Returns T of a course."""
        return len(course.shapes) - self.place_of_count - 1


def plan(settings: JointHead, budget: Budget, space: Space) -> HeadPlan:
    """Plans the release of one client alone, who shares no noise.

    Args:
        settings: The settings of `synthesis.joint_head`.
        budget: The client's budget.
        space: What is public about the images.

    Raises:
        UserError: As `plan_together`.
    """
    return plan_together(settings, budget, space, ALONE)


def plan_together(settings: JointHead, budget: Budget, space: Space, group: Group) -> HeadPlan:
    """Plans the noise of all sums, in shares. No private record is read.

    Args:
        settings: The settings of `synthesis.joint_head`.
        budget: The budget of each client, which the sums spend whole.
        space: What is public about the images.
        group: Who makes the release together.

    Raises:
        UserError: As `joint_plan.shared`.
    """
    of_one = dp_head.plan(settings, budget, space)
    details = joint_plan.details_of(of_one)
    moments = dp_head.moments_plan(settings, budget, space)
    fixed = dp_head.fixed_of(settings, space)
    weights = fixed.count + 1, space.classes
    courses = _courses(budget, group, details, moments, weights, space.records)
    shares = courses[0].shares
    details |= {
        "lattice": {"steps_per_unit": shares.scale},
        "share_of_noise": 1 / math.sqrt(shares.least_honest),
        **joint_plan.facts(shares, group),
    }
    if moments and group.clients > 1:
        # one client alone keeps the lattice of its images
        details["moments"] = {**details["moments"], "lattice_steps_per_unit": shares.scale}
    statement = joint_plan.joint_statement(
        "joint_head (full-batch noisy gradient steps of a linear head on fixed features, over the "
        "records of all its clients)",
        budget,
        details,
        group,
        usual=of_one.statement.not_covered,
        accountant=of_one.statement.accountant,
    )
    counts = " or ".join(details["gradients"]["sigma_by_steps"])
    line = (
        f"joint_head: {joint_plan.together(group)}, {counts} steps over all records by the "
        "noisy number of these"
    )
    return HeadPlan(
        of_one.settings,
        space,
        statement,
        lines=joint_plan.lines(line, statement),
        courses=courses,
        moments=moments,
    )


def _courses(
    budget: Budget,
    group: Group,
    details: dict,
    moments: Plan | None,
    weights: tuple[int, int],
    records: int | None,
) -> tuple[Course, ...]:
    """Returns a course for each number of steps that there may be, all on one lattice.

    Args:
        budget: The budget of the whole release.
        group: Who makes the release together.
        details: Of the statement of `dp_head`.
        moments: The plan of the images, or None.
        weights: The shape of the head.
        records: The declared number of all clients' records.
    """
    sigmas = (details["count"]["sigma"],)
    shapes = ((1,),)
    if moments:
        sigmas = (*moments.statement.details["sigma"], *sigmas)
        shapes = (*dp_moments.sum_shapes(moments), *shapes)
    courses = []
    for steps, sigma in details["gradients"]["sigma_by_steps"].items():
        all_sigmas = (*sigmas, *[sigma] * int(steps))
        all_shapes = (*shapes, *[weights] * int(steps))
        courses.append(joint_plan.shared(budget, all_sigmas, all_shapes, group, COARSEST))
    finest = max(course.shares.scale for course in courses)
    on_one_lattice = []
    for course in courses:
        sums = course.shares.sigmas, course.shapes
        on_one_lattice.append(joint_plan.shared(budget, *sums, group, finest, records))
    return tuple(on_one_lattice)


def fit(
    shard: Images, plan: HeadPlan, noise: Noise, seed: int, where: Where = HERE
) -> dict[str, np.ndarray]:
    """Makes the release of one client alone, which is that of `dp_head`.

    Args:
        shard: The client's private records.
        plan: The plan, from `plan`.
        noise: The noise source.
        seed: Not used, as in `dp_head`.
        where: Not used.
    """
    return dp_head.fit(shard, plan, noise, seed, where)


def course(plan: HeadPlan, released: Sequence[np.ndarray]) -> Course:
    """Returns the sums that there are: their number is known once the count is released.

    Args:
        plan: The plan, from `plan_together`.
        released: What was released so far, in original units.
    """
    if len(released) <= plan.place_of_count:
        return plan.courses[0]
    steps = _schedule(plan, released).steps
    (found,) = [course for course in plan.courses if plan.steps_of(course) == steps]
    return found


class _Part:
    """Is one client's part of the release.

    Args:
        shard: Its private records.
        plan: The plan, from `plan_together`.
    """

    def __init__(self, shard: Images, plan: HeadPlan):
        self.shard = shard
        self.plan = plan

    @cached_property
    def inputs(self) -> Inputs:
        """Returns the records on the lattice of the gradients."""
        settings = self.plan.settings
        fixed = dp_head.fixed_of(settings, self.plan.space)
        return linear_head.lattice_inputs(self.shard, fixed, settings.warps)

    def __call__(self, released: Sequence[np.ndarray]) -> np.ndarray:
        """Returns the next sum over this client's records, int64 in lattice steps."""
        plan = self.plan
        if len(released) < plan.place_of_count:
            return dp_moments.next_sum(self.shard, plan.moments, plan.scale, released)
        if len(released) == plan.place_of_count:
            return count_on_lattice(len(self.shard), plan.scale)
        return gradient_sum(
            self.inputs,
            _descent(plan, released).weights,
            clipping_norm=plan.settings.clipping_norm,
            scale=plan.scale,
        )


@contextmanager
def contribution(member: Member, plan: HeadPlan) -> Iterator[Contribution]:
    """Yields a client's part of the release (`joint_fit`).

    Args:
        member: The client.
        plan: The plan, from `plan_together`.
    """
    yield _Part(member.shard, plan)


def joint_state(
    plan: HeadPlan, released: Sequence[np.ndarray], summands: Sequence[int], member: Member
) -> dict[str, np.ndarray]:
    """Returns the state of the generator, from all sums with the noise of all clients.

    Args:
        plan: The plan, from `plan_together`.
        released: All sums over all clients, in original units.
        summands: How many clients' vectors are in each.
        member: Not used.
    """
    moments = {}
    if plan.moments:
        sigmas = joint_plan.deviations(plan.shares, summands[: plan.place_of_count])
        moments = dp_moments.state_of(plan.moments, sigmas, released[: plan.place_of_count])
    return dp_head.state_of(plan, moments, _descent(plan, released).average, _count(plan, released))


def _count(plan: HeadPlan, released: Sequence[np.ndarray]) -> float:
    """Returns the number of all records, as it was released."""
    return max(released[plan.place_of_count].item(), LEAST_COUNT)


def _schedule(plan: HeadPlan, released: Sequence[np.ndarray]) -> HeadSchedule:
    """Returns how many steps there are and their rate, by what their noise leaves of the signal.

    The noise is that of sums over all clients, for the rates follow from what was planned.
    """
    shares = plan.shares
    group = joint_plan.Group(shares.clients, shares.colluding, shares.clients - shares.threshold)
    mu = plan.statement.details["gradients"]["mu"]
    return linear_head.schedule_of(plan.settings, mu * _count(plan, released) / group.excess)


def _descent(plan: HeadPlan, released: Sequence[np.ndarray]) -> Descent:
    """Returns the head after all steps whose sums were released."""
    settings = plan.settings
    schedule = _schedule(plan, released)
    count = _count(plan, released)
    _, weights = plan.courses[0].shapes[plan.place_of_count :][:2]
    descent = linear_head.start(*weights)
    for total in released[plan.place_of_count + 1 :]:
        descent = linear_head.after(
            descent,
            total / count,
            learning_rate=schedule.learning_rate,
            momentum=settings.momentum,
            averaging=settings.averaging,
        )
    return descent


sample = dp_head.sample
classifier = dp_head.classifier
classifier_weights = dp_head.classifier_weights
