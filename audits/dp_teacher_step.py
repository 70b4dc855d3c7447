"""Audits a full-batch noisy step of `dp_teacher` in two worlds: the mu of its share, for T = 1.

What the adversary sees is the classifier after the step, without averaging: what averaging makes of
it is post-processing. Worst case as for a DP-SGD step: one record whose gradient is longer than the
clip, or none.
"""

import numpy as np

from audits import dp_moments_release, dpsgd_step, many_draws
from pipelines.config.generators import DpTeacher, WarmStart
from pipelines.privacy.audits import two_worlds
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import Noise
from pipelines.synthesis import dp_teacher
from pipelines.synthesis.base import Space
from pipelines.training.tensors import state_of, with_state

SPACE = Space(height=2, width=2, channels=1, classes=2)
SETTINGS = DpTeacher(
    **dp_moments_release.SETTINGS.model_dump(),
    teacher_share=0.6,
    steps=1,
    clipping_norm=0.3,
    learning_rate=0.5,
    momentum=0.0,
    averaging=0.0,
    classifier="mlp",
    augmentation=None,
    warm_start=WarmStart(images=1, epochs=1, batch=1, learning_rate=1e-3),
)


def audit(budget: Budget, *, runs: int, noise: Noise, settings: DpTeacher = SETTINGS) -> Verdict:
    """Takes many steps from the same weights in each world, with the noise that was planned.

    Args:
        budget: The budget of `dp_teacher.plan`.
        runs: Steps in each world.
        noise: The noise source.
        settings: The settings of the plan.
    """
    details = dp_teacher.plan(settings, budget, SPACE).statement.details["gradients"]
    model = dpsgd_step.network()
    start = state_of(model)

    def moved(with_canary: bool, deviation: float) -> np.ndarray:
        with_state(model, start)
        records = dpsgd_step.shard(with_canary)
        dp_teacher._noisy_steps(model, records, settings, deviation, 1.0, noise)
        return dpsgd_step.flat(state_of(model)) - dpsgd_step.flat(start)

    direction = moved(True, 0.0) - moved(False, 0.0)
    absent = np.array([moved(False, details["sigma"]) @ direction for _ in range(runs)])
    present = np.array([moved(True, details["sigma"]) @ direction for _ in range(runs)])
    return two_worlds.audit(
        absent,
        present,
        mu_claimed=details["mu"],
        delta=budget.delta,
        confidence=many_draws.CONFIDENCE,
    )
