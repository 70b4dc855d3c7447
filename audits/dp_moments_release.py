"""Audits `dp_moments` in two worlds: each release against its share of mu, and both together.

Worst case: one record whose coefficients and whose residual are as long as the clips, so that it
moves both sums by their whole sensitivity. The second sum hangs on the means that the first release
gave, so it is made anew for each draw, as `fit` does; the adversary, who knows all other records,
does the same in both worlds.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from audits import many_draws
from pipelines.config.generators import DpMoments
from pipelines.datasets.labelled_images import Images
from pipelines.privacy import discrete_gaussian
from pipelines.privacy.audits import two_worlds
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import Noise
from pipelines.synthesis import dp_moments, dp_moments_estimates, dp_moments_sums
from pipelines.synthesis.base import Plan, Space

SPACE = Space(height=4, width=4, channels=1, classes=2)
SETTINGS = DpMoments(
    centre=0.5,
    cutoff=2,
    clip=1.0,
    count_weight=0.5,
    residual_clip=0.5,
    first_share=0.5,
    inflation=1.0,
    contrast=1.0,
    low_epsilon=None,
)
# records of the canary's class in both worlds
OTHERS = 4


class Shard(NamedTuple):
    """Holds the records of a world.

    Attributes:
        u: float64 [n, p], coefficients as `encode` returns them.
        labels: int64 [n].
    """

    u: np.ndarray
    labels: np.ndarray


class Scores(NamedTuple):
    """Holds the scores of the first release, the second and both, float [n] each."""

    first: np.ndarray
    second: np.ndarray
    both: np.ndarray


def audit(
    budget: Budget, *, runs: int, noise: Noise, settings: DpMoments = SETTINGS
) -> dict[str, Verdict]:
    """Audits the first release, the second, and the two together.

    Args:
        budget: The budget of the plan.
        runs: Releases in each world.
        noise: The noise source.
        settings: The settings of the plan.

    Returns:
        The verdicts of `dp_moments_first`, `dp_moments_second` and `dp_moments` by these names.
    """
    plan = dp_moments.plan(settings, budget, SPACE)
    absent = scores(plan, runs, noise, with_canary=False)
    present = scores(plan, runs, noise, with_canary=True)
    sigma1, sigma2 = plan.statement.details["sigma"]
    claims = {
        "dp_moments_first": ("first", 1 / sigma1),
        "dp_moments_second": ("second", 1 / sigma2),
        "dp_moments": ("both", plan.statement.mu),
    }
    verdicts = {}
    for name, (part, mu) in claims.items():
        verdicts[name] = two_worlds.audit(
            getattr(absent, part),
            getattr(present, part),
            mu_claimed=mu,
            delta=budget.delta,
            confidence=many_draws.CONFIDENCE,
        )
    return verdicts


def scores(plan: Plan, runs: int, noise: Noise, *, with_canary: bool) -> Scores:
    """Returns log-likelihood ratios of many runs of both releases in one world.

    Args:
        plan: The plan of the releases.
        runs: Runs of both releases.
        noise: The noise source.
        with_canary: True for the world with the canary.
    """
    scale = plan.statement.details["lattice_steps_per_unit"]
    sigma1, sigma2 = plan.statement.details["sigma"]
    shards = worlds_of(plan)
    sums = [_first(shard, plan) for shard in shards]
    first = many_draws.draws(sums[with_canary], runs, sigma=sigma1, scale=scale, noise=noise)
    parts = dp_moments_sums.parts_of(plan.settings, plan.space)
    means = []
    for release in first:
        means.append(dp_moments_estimates.estimate_means(release, plan.settings, parts)[0])
    seconds = []
    for shard in shards:
        seconds.append(np.stack([_second(shard, mean, plan) for mean in means]))
    second = discrete_gaussian.release(seconds[with_canary], sigma=sigma2, scale=scale, noise=noise)
    first_ratio = ratio(first, sums, scale, sigma1)
    second_ratio = ratio(second, seconds, scale, sigma2)
    return Scores(first_ratio, second_ratio, both=first_ratio + second_ratio)


def worlds_of(plan: Plan) -> tuple[Shard, Shard]:
    """Returns the worlds without and with the canary: a bright corner among dark ones.

    All records are of one class.
    """
    records = canary_last()
    u = dp_moments_sums.encode(records.pixels, plan.settings, SPACE)
    return Shard(u[:-1], records.labels[:-1]), Shard(u, records.labels)


def canary_last() -> Images:
    """Returns dark records of one class, and the canary last.

    It is a bright corner, whose coefficients and residual are as long as the clips.
    """
    images = np.zeros((OTHERS + 1, *SPACE.shape), np.uint8)
    images[-1, :3, :2] = 255
    return Images(images, np.zeros(len(images), np.int64), np.arange(len(images)))


def _first(shard: Shard, plan: Plan) -> np.ndarray:
    return dp_moments_sums.first_sum(
        *shard, plan.settings, plan.space, plan.statement.details["lattice_steps_per_unit"]
    )


def _second(shard: Shard, means: np.ndarray, plan: Plan) -> np.ndarray:
    return dp_moments_sums.second_sum(
        *shard, means, plan.settings, plan.statement.details["lattice_steps_per_unit"]
    )


def ratio(released: np.ndarray, sums: Sequence[np.ndarray], scale: int, sigma: float) -> np.ndarray:
    """Returns log p(released | canary) / p(released | none), up to the lattice.

    Args:
        released: Many draws of a sum, in original units.
        sums: The sum without noise in the worlds without and with the canary, in lattice steps.
        scale: Lattice steps per unit.
        sigma: The deviation of the noise.
    """
    absent = sums[0] / scale
    present = sums[1] / scale
    return many_draws.projected(released, (absent + present) / 2, present - absent) / sigma**2
