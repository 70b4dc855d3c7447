"""Makes a joint release in one process: one secure sum after the other, then the generator's state.

A generator that clients fit together is a module with `plan_together`, and three functions more. Each
party of a release calls them, so that all know what comes next:

course(plan, released)       the sums there are, by what was released so far
contribution(shard, plan)    a client's part: a function of what was released, to its next sum
joint_state(plan, released)  the state of the generator, when all sums are there
"""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

import numpy as np

from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.privacy.secure_sums.in_process import Summation
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.synthesis.joint_plan import JointPlan

# takes what was released, in original units, and returns this client's part of the next sum: int64 of
# its shape in lattice steps, private, without noise
Contribution = Callable[[Sequence[np.ndarray]], np.ndarray]


def fit_together(
    module: ModuleType, shards: Mapping[str, Images], plan: JointPlan, sums: Summation
) -> dict[str, np.ndarray]:
    """Makes all sums over the clients, and turns them into the state of one generator.

    Args:
        module: The generator's module.
        shards: Each client's private records.
        plan: The plan, from `plan_together`.
        sums: Carries each client's vectors to their sum.

    Returns:
        The state, as the generator's `fit` returns it.

    Raises:
        UserError: There is no sum.
    """
    parts = {client: module.contribution(shard, plan) for client, shard in shards.items()}
    released: list[np.ndarray] = []
    while len(released) < len(module.course(plan, released).shapes):
        shares = module.course(plan, released).shares
        vectors = {client: part(released) for client, part in parts.items()}
        try:
            total = sums.total(len(released), vectors, shares)
        except Refusal as refusal:
            raise UserError(f"The joint release has no sum: {refusal}") from None
        released.append(total / plan.scale)
    return module.joint_state(plan, released)
