"""Audits a noisy step of `dp_head` in two worlds: the mu of all its steps, for one step.

What the adversary sees is the released sum itself, in units of the clipping norm. Worst case: one
record whose gradient is longer than the clip, or none. `dpsgd_head_run` audits a federated head,
which releases the same sum.
"""

import numpy as np

from audits import dp_moments_release, many_draws
from pipelines.config.generators import DpHead
from pipelines.config.heads import Head, HeadSchedule
from pipelines.privacy import lattice_gradients
from pipelines.privacy.audits import two_worlds
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget, release
from pipelines.privacy.noise import Noise
from pipelines.synthesis import dp_head
from pipelines.synthesis.base import Space

SPACE = Space(height=8, width=8, channels=1, classes=3)
SETTINGS = DpHead(
    **dp_moments_release.SETTINGS.model_dump(),
    head_share=1.0,
    count_share=0.01,
    clipping_norm=0.5,
    schedules=[HeadSchedule(from_signal=0.0, steps=1, learning_rate=1.0)],
)
# under which the canary's gradient is as long as its inputs
WEIGHTS = np.array([[0.0, 9.0, 0.0], [0.0, 9.0, 0.0]])
OTHERS = np.array([[0.1, 0.2], [0.2, -0.1], [0.3, 0.0]])
CANARY = np.array([[1.0, 1.0]])


def total(with_canary: bool, settings: Head, scale: int) -> np.ndarray:
    """Returns the sum of clipped gradients, int64 [2, classes] in lattice steps.

    Args:
        with_canary: Whether the canary is among the records.
        settings: Their clipping norm counts.
        scale: Lattice steps per unit.
    """
    inputs = np.concatenate([OTHERS, CANARY]) if with_canary else OTHERS
    records = lattice_gradients.inputs_of(inputs, np.zeros(len(inputs), np.int64))
    return lattice_gradients.gradient_sum(
        records, WEIGHTS, clipping_norm=settings.clipping_norm, scale=scale
    )


def audit(budget: Budget, *, runs: int, noise: Noise, settings: DpHead = SETTINGS) -> Verdict:
    """Releases the sum many times in each world, with the noise that was planned for one step.

    Args:
        budget: The budget of `dp_head.plan`.
        runs: Releases in each world.
        noise: The noise source.
        settings: The settings of the plan.
    """
    details = dp_head.plan(settings, budget, SPACE).statement.details
    sigma = details["gradients"]["sigma_by_steps"]["1"]
    scale = details["lattice"]["steps_per_unit"]
    absent = total(False, settings, scale)
    present = total(True, settings, scale)
    direction = ((present - absent) / scale).ravel()

    def seen(world: np.ndarray) -> np.ndarray:
        repeated = np.broadcast_to(world, (runs, *world.shape))
        noisy = release(repeated, sigma=sigma, scale=scale, noise=noise)
        return noisy.reshape(runs, -1) @ direction

    return two_worlds.audit(
        seen(absent),
        seen(present),
        mu_claimed=details["gradients"]["mu"],
        delta=budget.delta,
        confidence=many_draws.CONFIDENCE,
    )
