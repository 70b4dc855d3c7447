"""The two-worlds audits of `dp_moments`: each of its two releases against its own share of mu, and both together.

Worst case: one record whose coefficients and whose residual are as long as the clips, so that it moves both sums by
their whole sensitivity. The second sum hangs on the means that the first release gave, so it is made anew for each
draw, as `fit` does; the adversary, who knows all other records, does the same in both worlds.
"""

from typing import NamedTuple

import numpy as np

from audits import many_draws
from pipelines.config.generators import DpMoments
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
OTHERS = 4  # records of the canary's class that are there in both worlds


class Shard(NamedTuple):
    u: np.ndarray  # float64 [n, p], coefficients as `encode` gives them
    labels: np.ndarray  # int64 [n]


class Scores(NamedTuple):
    first: np.ndarray  # float [n] each
    second: np.ndarray
    both: np.ndarray


def audit(
    budget: Budget, *, runs: int, noise: Noise, settings: DpMoments = SETTINGS
) -> dict[str, Verdict]:
    """{release: verdict} for `dp_moments_first`, `dp_moments_second` and `dp_moments`, the two together."""
    plan = dp_moments.plan(settings, budget, SPACE)
    absent, present = (scores(plan, runs, noise, with_canary=there) for there in (False, True))
    first, second = (1 / sigma for sigma in plan.statement.details["sigma"])
    mus = {"first": first, "second": second, "both": plan.statement.mu}
    found = {
        part: two_worlds.audit(
            getattr(absent, part),
            getattr(present, part),
            mu_claimed=mu,
            delta=budget.delta,
            confidence=many_draws.CONFIDENCE,
        )
        for part, mu in mus.items()
    }
    return {
        "dp_moments" if part == "both" else f"dp_moments_{part}": verdict
        for part, verdict in found.items()
    }


def scores(plan: Plan, runs: int, noise: Noise, *, with_canary: bool) -> Scores:
    """Log-likelihood ratios of `runs` runs of both releases in one world."""
    details, scale = plan.statement.details, plan.statement.details["lattice_steps_per_unit"]
    sigma1, sigma2 = details["sigma"]
    shards = worlds_of(plan)
    sums = [_first(shard, plan) for shard in shards]
    first = many_draws.draws(sums[with_canary], runs, sigma=sigma1, scale=scale, noise=noise)
    means = [dp_moments_estimates.estimate_means(release, plan.settings)[0] for release in first]
    seconds = [np.stack([_second(shard, mean, plan) for mean in means]) for shard in shards]
    second = discrete_gaussian.release(seconds[with_canary], sigma=sigma2, scale=scale, noise=noise)
    ratios = (_ratio(first, sums, scale, sigma1), _ratio(second, seconds, scale, sigma2))
    return Scores(*ratios, both=sum(ratios))


def worlds_of(plan: Plan) -> tuple[Shard, Shard]:
    """Without and with the canary: a bright corner among dark ones, all of one class."""
    pixels = np.zeros((OTHERS + 1, *SPACE.shape), np.float32)
    pixels[-1, :3, :2] = 1.0
    u = dp_moments_sums.encode(pixels, plan.settings, SPACE)
    labels = np.zeros(len(u), np.int64)
    return Shard(u[:-1], labels[:-1]), Shard(u, labels)


def _first(shard: Shard, plan: Plan) -> np.ndarray:
    return dp_moments_sums.first_sum(
        *shard, plan.settings, plan.space, plan.statement.details["lattice_steps_per_unit"]
    )


def _second(shard: Shard, means: np.ndarray, plan: Plan) -> np.ndarray:
    return dp_moments_sums.second_sum(
        *shard, means, plan.settings, plan.statement.details["lattice_steps_per_unit"]
    )


def _ratio(released: np.ndarray, sums: list[np.ndarray], scale: int, sigma: float) -> np.ndarray:
    """log p(released | canary) / p(released | none), up to the lattice."""
    absent, present = (total / scale for total in sums)
    return many_draws.projected(released, (absent + present) / 2, present - absent) / sigma**2
