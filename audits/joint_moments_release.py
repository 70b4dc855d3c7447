"""Audits `joint_moments` in two worlds, against the server and t colluding clients.

**Quantity**: both sums of the release, over all its clients, with noise in shares. **Sensitivity**:
1 each, in original units. **Neighbours**: one record is added at one honest client. **Accounting**:
joint_moments.py; the claim is mu of the plan.

Each client's part is what it hands to the secure sum. The second one hangs on the first total, so it
is made anew for each draw. Worst case: as few clients as may be are left, as many of them collude as
the plan allows for, and all other records are known. So the shares of the honest clients alone hide
the record. That the secure sum is the plain one is tested elsewhere, and here it is the plain one.
"""

from collections.abc import Sequence

import numpy as np

from audits import many_draws
from audits.dp_moments_release import OTHERS, SETTINGS, SPACE, canary_last, ratio
from pipelines.config.generators import JointMoments
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.audits import two_worlds
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import Noise
from pipelines.privacy.secure_sums import noise_shares
from pipelines.synthesis import joint_moments
from pipelines.synthesis.joint_fit import Member
from pipelines.synthesis.joint_plan import Group, JointPlan

GROUP = Group(clients=6, colluding=2, may_drop=1)
SETTINGS_TOGETHER = JointMoments(**SETTINGS.model_dump(), colluding=GROUP.colluding)


def audit(budget: Budget, *, runs: int, noise: Noise) -> Verdict:
    """Makes both sums many times in each world, and holds what shows against the claim.

    Args:
        budget: The budget of each client.
        runs: Releases in each world.
        noise: The noise source of every client.
    """
    plan = joint_moments.plan_together(SETTINGS_TOGETHER, budget, SPACE, GROUP)
    return two_worlds.audit(
        scores(plan, runs, noise, with_canary=False),
        scores(plan, runs, noise, with_canary=True),
        mu_claimed=plan.statement.mu,
        delta=budget.delta,
        confidence=many_draws.CONFIDENCE,
    )


def scores(plan: JointPlan, runs: int, noise: Noise, *, with_canary: bool) -> np.ndarray:
    """Returns the logarithm of each release's likelihood ratio but for a constant, float64 [runs].

    Args:
        plan: The plan of the release.
        runs: How many releases.
        noise: The noise source of every client.
        with_canary: True for the world with the canary.
    """
    records = canary_last()
    sigmas = plan.statement.details["sigma"]
    worlds = (records[:OTHERS], records)
    firsts = [np.stack([_part(world, plan, [])] * runs) for world in worlds]
    released = left_of_sum(firsts[with_canary], plan, 0, noise)
    seconds = []
    for world in worlds:
        seconds.append(np.stack([_part(world, plan, [total]) for total in released]))
    second = left_of_sum(seconds[with_canary], plan, 1, noise)
    return ratio(released, firsts, plan.scale, sigmas[0]) + ratio(
        second, seconds, plan.scale, sigmas[1]
    )


def left_of_sum(sums: np.ndarray, plan: JointPlan, number: int, noise: Noise) -> np.ndarray:
    """Returns what server and colluding clients have of many draws of a sum, in original units.

    Args:
        sums: What the honest clients' records come to, int64 [runs, ...] in lattice steps.
        plan: The plan of the release.
        number: Which of its sums it is.
        noise: The noise source of every client.
    """
    honest = [sums] + [np.zeros_like(sums)] * (plan.shares.least_honest - 1)
    total = sum(noise_shares.noisy(part, plan.shares, number, noise=noise) for part in honest)
    return total / plan.scale


def _part(records: Images, plan: JointPlan, released: Sequence[np.ndarray]) -> np.ndarray:
    """Returns a client's part of its next sum, int64 in lattice steps."""
    with joint_moments.contribution(Member("c0", records), plan) as part:
        return part(released)
