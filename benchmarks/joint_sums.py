"""Makes joint releases for benchmarks. The clients and the server of a secure sum run in this process."""

import numpy as np

from pipelines.config.values import Block
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.privacy.secure_sums.in_process import Summation
from pipelines.synthesis import base
from pipelines.synthesis.joint_fit import Member, fit_together
from pipelines.synthesis.joint_plan import Group


def fitted(
    generator: str,
    settings: Block,
    budget: Budget,
    space: base.Space,
    group: Group,
    parts: list[Images],
    seed: int,
    where: base.Where = base.HERE,
) -> dict[str, np.ndarray]:
    """Returns the state of what clients release together, with noise from the operating system.

    Args:
        generator: The joint generator's name.
        settings: Its settings.
        budget: The budget of each client.
        space: What is public about the images, of all clients' records.
        group: Who makes the release together.
        parts: The records of each client.
        seed: Of all that is random but the noise.
        where: Where it runs.
    """
    module = base.load(generator)
    plan = module.plan_together(settings, budget, space, group)
    members = []
    for number, part in enumerate(parts):
        members.append(Member(f"c{number}", part, seed, where))
    sums = Summation("benchmark", {member.client: OsEntropy() for member in members})
    return fit_together(module, members, plan, sums)
