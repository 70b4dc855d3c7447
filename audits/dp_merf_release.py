"""Audits `dp_merf` in two worlds: its one release against the mu of its plan.

Any record is a worst case, for features have norm one: the canary is a white image among none.
"""

import numpy as np

from audits import many_draws
from pipelines.config.generators import DpMerf
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.audits import two_worlds
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import Noise
from pipelines.synthesis import dp_merf
from pipelines.synthesis.base import Plan, Space

SPACE = Space(height=2, width=2, channels=1, classes=2)
SETTINGS = DpMerf(
    features=6,
    length_scale=1.0,
    count_weight=0.5,
    network="mlp",
    steps=1,
    batch=2,
    learning_rate=1e-2,
)


def audit(budget: Budget, *, runs: int, noise: Noise, settings: DpMerf = SETTINGS) -> Verdict:
    """Makes the release many times in each world, with the noise that `dp_merf.plan` planned.

    Args:
        budget: The budget of the plan.
        runs: Releases in each world.
        noise: The noise source.
        settings: The settings of the plan.
    """
    plan = dp_merf.plan(settings, budget, SPACE)
    details = plan.statement.details
    scale = details["lattice_steps_per_unit"]
    sums = totals(plan)
    absent = sums[0] / scale
    present = sums[1] / scale
    scores = []
    for total in sums:
        released = many_draws.draws(total, runs, sigma=details["sigma"], scale=scale, noise=noise)
        scores.append(many_draws.projected(released, (absent + present) / 2, present - absent))
    return two_worlds.audit(
        *scores, mu_claimed=plan.statement.mu, delta=budget.delta, confidence=many_draws.CONFIDENCE
    )


def totals(plan: Plan) -> list[np.ndarray]:
    """Returns the sums without and with the canary, int64 [K, d + 1] in lattice steps."""
    white = np.full((1, *SPACE.shape), 255, np.uint8)
    canary = Images(white, np.zeros(1, np.int64), np.zeros(1, np.int64))
    scale = plan.statement.details["lattice_steps_per_unit"]
    return [dp_merf.embedding_sum(canary[:count], plan.settings, SPACE, scale) for count in (0, 1)]
