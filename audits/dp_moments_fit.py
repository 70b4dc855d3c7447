"""Audits `dp_moments` from end to end: whole fits, seen through the state that they return.

It holds the wiring of `fit` (which noise goes to which sum) against the plan; `dp_moments_release`
holds the sums. Worst case (dp_synthesis.md 3.3, T13): one class is empty, or has one bright canary.
The audit is loose, for means are ratios.
"""

import numpy as np

from audits import many_draws
from audits.dp_moments_release import SETTINGS, SPACE
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.audits import two_worlds
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import Noise
from pipelines.synthesis import dp_moments, dp_moments_sums


def audit(budget: Budget, *, runs: int, noise: Noise) -> Verdict:
    """Fits many times in each world; the score is the emptied class's mean along the canary.

    Args:
        budget: The budget of the plan.
        runs: Fits in each world.
        noise: The noise source.
    """
    plan = dp_moments.plan(SETTINGS, budget, SPACE)
    records = _records()
    direction = dp_moments_sums.encode(records.pixels, SETTINGS, SPACE)[1]

    def score(shard: Images) -> float:
        return dp_moments.fit(shard, plan, noise, seed=0)["means"][1] @ direction

    absent = np.array([score(records[:1]) for _ in range(runs)])
    present = np.array([score(records) for _ in range(runs)])
    claimed = plan.statement.mu
    return two_worlds.audit(
        absent, present, mu_claimed=claimed, delta=budget.delta, confidence=many_draws.CONFIDENCE
    )


def _records() -> Images:
    """Returns a dark record of class 0, in both worlds, and the canary, alone in class 1."""
    images = np.zeros((2, *SPACE.shape), np.uint8)
    images[1] = 255
    return Images(images, np.array([0, 1]), np.arange(2))
