"""Fits `joint_datalens`: one `datalens` for several clients, whose teachers vote on the same fakes.

Released: per generator step, the sums over all teachers of all clients of their votes on B fakes. Each
client adds the sum of its own teachers' votes with a share of the noise, under the masks of a secure
sum (privacy/secure_sums). Every client follows the same noisy votes with a generator of its own, so
that nobody hands out fakes. On machines of different kinds the last bits of these generators differ.

**Sensitivity**: a record reaches one teacher of one client. Its votes on B fakes move the sum by at
most 2 sqrt(k B) in L2 norm (datalens/votes.py), which is the unit of each sum. **Neighbours**: one
record is added or removed at one client. The bound holds for any fakes, so that a wrong total costs no
privacy. **Noise**: of the one budget that all have. A share has the variance sigma^2 / (s - t). s is
the fewest clients of a sum, and t how many of them may collude with the server. T steps compose to the
budget's mu, exactly. **Accounted** in `plan_together`, which every client's ledger enters. Released in
`joint_fit.fit_together`, or by the members of a network. All that follows is post-processing.

The number N of all teachers follows from the public number of all records. Each client has N / K.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from pipelines import seeds
from pipelines.config.generators import JointDatalens
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.synthesis import joint_plan, neural
from pipelines.synthesis.base import HERE, Space, Where
from pipelines.synthesis.datalens import generator as datalens
from pipelines.synthesis.datalens import machines, votes
from pipelines.synthesis.datalens.plan import planned, settled
from pipelines.synthesis.datalens.student import Student
from pipelines.synthesis.datalens.workers import assembled
from pipelines.synthesis.joint_fit import Contribution, Member
from pipelines.synthesis.joint_plan import ALONE, Group, JointPlan
from pipelines.training.tensors import device, one_thread

NAME = "joint_datalens"
KNOWN_FAILURES = datalens.KNOWN_FAILURES
# of the mechanism, in the ledger: raise it when the same parameters would release something else
VERSION = 2
IDENTITY = (
    datalens.IDENTITY
    | joint_plan.IDENTITY
    | Identity(consequences=frozenset({"share_of_noise", "teachers_of_a_client"}))
)
# every client follows the votes with the same generator
ONE_SEED = True
# lattice steps per 2 sqrt(k B) votes, at least: a vote is cut to whole steps
COARSEST = 2**24


def plan(settings: JointDatalens, budget: Budget, space: Space) -> JointPlan:
    """Plans the release of one client alone, who shares no noise.

    Args:
        settings: The settings of `synthesis.joint_datalens`.
        budget: The client's budget.
        space: What is public about the images, and the number of records of the client.

    Raises:
        UserError: As `plan_together`.
    """
    return plan_together(settings, budget, space, ALONE)


def plan_together(settings: JointDatalens, budget: Budget, space: Space, group: Group) -> JointPlan:
    """Plans the teachers of each client, and the noise of all steps in shares.

    No private record is read.

    Args:
        settings: The settings of `synthesis.joint_datalens`.
        budget: The budget of each client, which the steps spend whole.
        space: What is public about the images, and the number of records of all clients.
        group: Who makes the release together.

    Raises:
        UserError: As for `datalens`, delta is too small for the lattice of the noise, or teachers are
            to be trained on several machines.
    """
    if group.clients > 1 and machines.several():
        raise UserError(
            "joint_datalens trains each client's teachers on one machine. Start it without "
            "WORLD_SIZE."
        )
    counted = settled(settings, budget, space, group.excess, NAME)
    each = max(1, counted.teachers // group.clients)
    counted = counted.model_copy(update={"teachers": each * group.clients})
    of_one = planned(counted, budget, space, group.excess, NAME)
    details = joint_plan.details_of(of_one)
    # much noise may have changed them
    steps = of_one.settings.steps
    course = joint_plan.shared(
        budget,
        (math.sqrt(steps) * budget.sigma(1.0),) * steps,
        ((of_one.settings.batch, math.prod(space.shape)),) * steps,
        group,
        COARSEST,
    )
    details |= {
        "lattice_steps_per_vote": math.floor(course.shares.scale / details["sensitivity"]),
        "share_of_noise": 1 / math.sqrt(course.shares.least_honest),
        "teachers_of_a_client": each,
        **joint_plan.facts(course.shares, group),
    }
    statement = joint_plan.joint_statement(
        "joint_datalens (noisy votes of all clients' teachers on image gradients)",
        budget,
        details,
        group,
    )
    line = (
        f"joint_datalens: {joint_plan.together(group)}, {each} teachers each, {steps} steps at "
        f"sigma/N = {details['sigma_over_N']:.2f}"
    )
    return JointPlan(
        of_one.settings,
        space,
        statement,
        of_one.weak,
        joint_plan.lines(line, statement),
        courses=(course,),
    )


def fit(
    shard: Images, plan: JointPlan, noise: Noise, seed: int, where: Where = HERE
) -> dict[str, np.ndarray]:
    """Makes the release of one client alone, which is that of `datalens`.

    Args:
        shard: The client's private records.
        plan: The plan, from `plan`.
        noise: The noise source.
        seed: The seed of weights, latents and batches.
        where: The device. A killed run starts again.
    """
    return datalens.fit(shard, plan, noise, seed, where)


@contextmanager
def contribution(member: Member, plan: JointPlan) -> Iterator[Contribution]:
    """Yields a client's part of the release (`joint_fit`): the votes of its own teachers.

    The processes of the teachers end with the block.

    Args:
        member: The client.
        plan: The plan, from `plan_together`.
    """
    settings = plan.settings
    details = plan.statement.details
    # other teachers than those of the others begin with other weights
    seed = seeds.derive(member.seed, "teachers of", member.client)
    each = details["teachers_of_a_client"]
    owner = votes.assign(member.shard.ids, each, key=seed.to_bytes(8, "big"))
    recipe = datalens.recipe_of(plan, each, seed, device(member.where.device))
    with (
        one_thread(),
        assembled(
            recipe, member.shard, owner, datalens.ballot(settings), member.beside
        ) as teachers,
    ):
        pupil = _Pupil(plan, member.seed, member.where.device)

        def part(released: Sequence[np.ndarray]) -> np.ndarray:
            pupil.follow(released)
            rounds = pupil.student.rounds(pupil.step)
            total = teachers.poll(*pupil.question.arrays, rounds)
            return total * details["lattice_steps_per_vote"]

        yield part


def joint_state(
    plan: JointPlan, released: Sequence[np.ndarray], summands: Sequence[int], member: Member
) -> dict[str, np.ndarray]:
    """Returns the state of the generator, from the noisy votes of all clients.

    Args:
        plan: The plan, from `plan_together`.
        released: The sums of all steps, in units of 2 sqrt(k B) votes.
        summands: Not used.
        member: One of the clients, of which seed and device are read.
    """
    with one_thread():
        pupil = _Pupil(plan, member.seed, member.where.device)
        pupil.follow(released)
    return neural.state(pupil.student.training.network)


class _Pupil:
    """Follows the noisy votes of all clients, as every client does by itself.

    Args:
        plan: The plan, from `plan_together`.
        seed: The seed that all clients have.
        on: auto | cpu | cuda.
    """

    def __init__(self, plan: JointPlan, seed: int, on: str):
        self.plan = plan
        self.student = Student(plan.settings, plan.space, seed, device(on))
        self.step = 0
        self.question = self.student.ask(self.step)

    def follow(self, released: Sequence[np.ndarray]) -> None:
        """Learns from all votes that are new. Then `question` has the fakes of the next step."""
        votes_per_unit = self.plan.scale / self.plan.statement.details["lattice_steps_per_vote"]
        for total in released[self.step :]:
            self.student.learn(self.step, self.question, total * votes_per_unit)
            self.step += 1
            self.question = self.student.ask(self.step)


course = joint_plan.only_course
sample = neural.sample
