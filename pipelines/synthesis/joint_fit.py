"""Makes a joint release in one process: one secure sum after the other, then the generator's state.

A generator that clients fit together is a module with `plan_together`, `ONE_SEED` (whether all clients
must have the same seed), and three functions more. Each party of a release calls them, so that all
know what comes next:

course(plan, released)               the sums there are, by what was released so far
contribution(member, plan)           a client's part while the release is made: a context, of a
                                     function from what was released to its next sum
joint_state(plan, released, summands, member)
                                     the state of the generator, when all sums are there, by how many
                                     clients are in each
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from tqdm import tqdm

from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.privacy.secure_sums.in_process import Summation
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.synthesis.base import HERE, Where
from pipelines.synthesis.joint_plan import JointPlan

# takes what was released, in original units, and returns this client's part of the next sum: int64 of
# its shape in lattice steps, private, without noise
Contribution = Callable[[Sequence[np.ndarray]], np.ndarray]


@dataclass(frozen=True)
class Member:
    """Holds what a client has its part from.

    Attributes:
        client: Its name.
        shard: Its private records.
        seed: The seed of everything random but the noise, which all clients have.
        where: Where its part is made.
        beside: How many clients make their parts on this machine.
    """

    client: str
    shard: Images
    seed: int = 0
    where: Where = HERE
    beside: int = 1


def fit_together(
    module: ModuleType, members: Sequence[Member], plan: JointPlan, sums: Summation
) -> dict[str, np.ndarray]:
    """Makes all sums over the clients, and turns them into the state of one generator.

    Args:
        module: The generator's module.
        members: The clients.
        plan: The plan, from `plan_together`.
        sums: Carries each client's vectors to their sum.

    Returns:
        The state, as the generator's `fit` returns it.

    Raises:
        UserError: There is no sum.
    """
    released: list[np.ndarray] = []
    with ExitStack() as stack:
        parts: dict[str, Contribution] = {}
        for member in members:
            parts[member.client] = stack.enter_context(module.contribution(member, plan))
        bar = tqdm(desc="secure sums", disable=None, mininterval=1)
        while len(released) < len(module.course(plan, released).shapes):
            course = module.course(plan, released)
            bar.total = len(course.shapes)
            vectors = {client: part(released) for client, part in parts.items()}
            try:
                total = sums.total(len(released), vectors, course.shares)
            except Refusal as refusal:
                raise UserError(f"The joint release has no sum: {refusal}") from None
            released.append(plan.of_all_clients(total, len(parts)))
            bar.update()
        bar.close()
    return module.joint_state(plan, released, [len(parts)] * len(released), members[0])
