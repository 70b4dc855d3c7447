"""Every audit of ours, and the controls: mechanisms that break their claims and must be caught."""

import math
from dataclasses import dataclass

import numpy as np

from audits import (
    datalens_votes,
    dp_merf_release,
    dp_moments_canaries,
    dp_moments_fit,
    dp_moments_release,
    dp_teacher_step,
    dpsgd_step,
    nearest_neighbour,
)
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy

BUDGET = Budget(epsilon=10.0, delta=1e-5)  # a claim whose attack needs few runs
Found = dict[str, Verdict]


@dataclass(frozen=True)
class Effort:
    runs: int  # of each released statistic in each world
    steps: int  # of DP-SGD in each world: dearer, as each is a call of its own
    fits: int  # of a whole generator in each world
    canaries: int
    generators: tuple[str, ...]  # whose images are attacked


SHORT = Effort(runs=10_000, steps=5_000, fits=1_000, canaries=1_000, generators=("dp_moments",))
LONG = Effort(
    runs=100_000, steps=30_000, fits=10_000, canaries=5_000, generators=("dp_moments", "datalens")
)


class HalvedNoise(OsEntropy):
    """The control: half the noise that was planned, as after halving the sensitivity."""

    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:
        return super().discrete_gaussian(shape, sigma / 2)


def mechanisms(effort: Effort) -> Found:
    """Two worlds: tight, so a claim that is wrong by a few percent is caught in the long form."""
    noise = OsEntropy()
    return {
        "vote_sum": datalens_votes.audit(BUDGET, runs=effort.runs, noise=noise),
        **dp_moments_release.audit(BUDGET, runs=effort.runs, noise=noise),
        "dp_merf": dp_merf_release.audit(BUDGET, runs=effort.runs, noise=noise),
        "dp_teacher_step": dp_teacher_step.audit(BUDGET, runs=effort.steps, noise=noise),
        "dpsgd_step": dpsgd_step.audit(BUDGET, runs=effort.steps, noise=noise),
    }


def attacks(effort: Effort) -> Found:
    """Through what leaves the mechanism: loose by nature, but on the code as it is used."""
    noise = OsEntropy()
    without = Budget(math.inf, BUDGET.delta)
    return {
        "black_box_dp_moments": dp_moments_fit.audit(BUDGET, runs=effort.fits, noise=noise),
        "one_run_dp_moments": dp_moments_canaries.audit(
            BUDGET, canaries=effort.canaries, noise=noise
        ),
        **{
            f"membership_{name}": nearest_neighbour.audit(name, BUDGET, noise=noise)
            for name in effort.generators
        },
        "membership_dp_moments_without_noise": nearest_neighbour.audit(
            "dp_moments", without, noise=noise
        ),
    }


def controls(effort: Effort) -> Found:
    """Each of these must fail."""
    noise, few, little = HalvedNoise(), effort.runs // 10, Budget(1.0, BUDGET.delta)
    halved = {
        "vote_sum": datalens_votes.audit(BUDGET, runs=few, noise=noise),
        "dp_merf": dp_merf_release.audit(BUDGET, runs=few, noise=noise),
        **dp_moments_release.audit(BUDGET, runs=few, noise=noise),
        "dpsgd_step": dpsgd_step.audit(
            BUDGET, runs=effort.steps // 5, noise=OsEntropy(), share_of_noise=0.5
        ),
    }
    return {
        **{f"{name}_with_half_the_noise": verdict for name, verdict in halved.items()},
        "membership_copies": nearest_neighbour.attacked(
            nearest_neighbour.copies, mu_claimed=little.mu, delta=BUDGET.delta
        ),
    }
