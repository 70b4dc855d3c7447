"""Audits `dp_moments` in one run: a first release holds a thousand canaries, each by its own coin.

Every canary is a record whose clipped coefficients all lie in one frequency of one class, and no
two share one: the released number there is the canary's own score. The audit is of the first
release alone, with nearly all of the budget.
"""

import numpy as np

from audits import many_draws
from pipelines.config.generators import DpMoments
from pipelines.privacy.audits import one_run
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import Noise
from pipelines.synthesis import dp_moments, dp_moments_sums
from pipelines.synthesis.base import Space

# of a 28x28 image at cutoff 14
COEFFICIENTS = 105
SETTINGS = DpMoments(
    centre=0.0,
    cutoff=14,
    clip=14.0,
    count_weight=0.01,
    residual_clip=6.0,
    first_share=0.99,
    inflation=1.0,
    contrast=1.0,
    low_epsilon=None,
)
# one canary in ten is called; the others are too close to tell
GUESSED = 10


def audit(budget: Budget, *, canaries: int, noise: Noise) -> Verdict:
    """Makes one release with all its canaries; the bound holds for the whole mechanism's claim.

    Args:
        budget: The budget of the plan.
        canaries: The number of canaries.
        noise: The noise source.
    """
    classes = -(-canaries // COEFFICIENTS)
    plan = dp_moments.plan(SETTINGS, budget, Space(28, 28, 1, classes))
    details = plan.statement.details
    included = np.random.default_rng().random(canaries) < 0.5
    labels, frequencies = np.divmod(np.arange(canaries), COEFFICIENTS)
    u = SETTINGS.clip * np.eye(COEFFICIENTS)[frequencies]
    scale = details["lattice_steps_per_unit"]
    total = dp_moments_sums.first_sum(u[included], labels[included], SETTINGS, plan.space, scale)
    (released,) = many_draws.draws(total, 1, sigma=details["sigma"][0], scale=scale, noise=noise)
    return one_run.audit(
        released[labels, frequencies],
        included,
        guesses=canaries // GUESSED,
        mu_claimed=plan.statement.mu,
        delta=budget.delta,
    )
