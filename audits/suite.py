"""Runs every audit of ours, and the controls, which break their claims and must be caught."""

import math
from dataclasses import dataclass

import numpy as np

from audits import (
    datalens_votes,
    dp_head_step,
    dp_merf_release,
    dp_moments_canaries,
    dp_moments_fit,
    dp_moments_release,
    dp_teacher_step,
    dpsgd_head_run,
    dpsgd_step,
    joint_moments_release,
    joint_sum,
    nearest_neighbour,
)
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy

# a claim whose attack needs few runs
BUDGET = Budget(epsilon=10.0, delta=1e-5)
Verdicts = dict[str, Verdict]


@dataclass(frozen=True)
class Effort:
    """Says how much work the audits take.

    Attributes:
        runs: Runs of each released statistic in each world.
        steps: Steps of DP-SGD in each world. They are dearer, as each is a call of its own.
        fits: Fits of a whole generator in each world.
        canaries: The canaries of the one-run audit.
        generators: The generators whose images are attacked.
    """

    runs: int
    steps: int
    fits: int
    canaries: int
    generators: tuple[str, ...]


SHORT = Effort(runs=10_000, steps=5_000, fits=1_000, canaries=1_000, generators=("dp_moments",))
LONG = Effort(
    runs=100_000, steps=30_000, fits=10_000, canaries=5_000, generators=("dp_moments", "datalens")
)


class HalvedNoise(OsEntropy):
    """Draws half the noise that was planned, as after halving the sensitivity: a control."""

    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:
        """Returns integers of half the standard deviation."""
        return super().discrete_gaussian(shape, sigma / 2)


def mechanisms(effort: Effort) -> Verdicts:
    """Audits in two worlds, tightly: the long form catches a claim wrong by a few percent."""
    noise = OsEntropy()
    return {
        "vote_sum": datalens_votes.audit(BUDGET, runs=effort.runs, noise=noise),
        **dp_moments_release.audit(BUDGET, runs=effort.runs, noise=noise),
        "dp_merf": dp_merf_release.audit(BUDGET, runs=effort.runs, noise=noise),
        "joint_sum": joint_sum.audit(BUDGET, runs=effort.runs, noise=noise),
        "joint_moments": joint_moments_release.audit(BUDGET, runs=effort.runs, noise=noise),
        "dp_head_step": dp_head_step.audit(BUDGET, runs=effort.runs, noise=noise),
        "dpsgd_head_run": dpsgd_head_run.audit(BUDGET, runs=effort.runs, noise=noise),
        "dp_teacher_step": dp_teacher_step.audit(BUDGET, runs=effort.steps, noise=noise),
        "dpsgd_step": dpsgd_step.audit(BUDGET, runs=effort.steps, noise=noise),
    }


def attacks(effort: Effort) -> Verdicts:
    """Attacks through what leaves the mechanism: loose by nature, but on the code as it is used."""
    noise = OsEntropy()
    verdicts = {
        "black_box_dp_moments": dp_moments_fit.audit(BUDGET, runs=effort.fits, noise=noise),
        "one_run_dp_moments": dp_moments_canaries.audit(
            BUDGET, canaries=effort.canaries, noise=noise
        ),
    }
    for name in effort.generators:
        verdicts[f"membership_{name}"] = nearest_neighbour.audit(name, BUDGET, noise=noise)
    without_noise = nearest_neighbour.audit(
        "dp_moments", Budget(math.inf, BUDGET.delta), noise=noise
    )
    return {**verdicts, "membership_dp_moments_without_noise": without_noise}


def controls(effort: Effort) -> Verdicts:
    """Audits mechanisms that break their claims. Each of these must fail."""
    noise = HalvedNoise()
    runs = effort.runs // 10
    halved = {
        "vote_sum": datalens_votes.audit(BUDGET, runs=runs, noise=noise),
        "dp_merf": dp_merf_release.audit(BUDGET, runs=runs, noise=noise),
        "joint_sum": joint_sum.audit(BUDGET, runs=runs, noise=noise),
        "joint_moments": joint_moments_release.audit(BUDGET, runs=runs, noise=noise),
        "dp_head_step": dp_head_step.audit(BUDGET, runs=runs, noise=noise),
        "dpsgd_head_run": dpsgd_head_run.audit(BUDGET, runs=runs, noise=noise),
        **dp_moments_release.audit(BUDGET, runs=runs, noise=noise),
        "dpsgd_step": dpsgd_step.audit(
            BUDGET, runs=effort.steps // 5, noise=OsEntropy(), share_of_noise=0.5
        ),
    }
    verdicts = {f"{name}_with_half_the_noise": verdict for name, verdict in halved.items()}
    claimed = Budget(1.0, BUDGET.delta).mu
    verdicts["membership_copies"] = nearest_neighbour.attacked(
        nearest_neighbour.copies, mu_claimed=claimed, delta=BUDGET.delta
    )
    return verdicts
