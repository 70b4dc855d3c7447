"""The two-worlds audit of `datalens`: all its noisy vote sums against the mu of its plan.

Worst case: one teacher's gradients change sign on the same coordinates, on every image of every step, which is what
one record could at most do. The other teachers' gradients exceed `clip`, so that their stochastic signs are certain.
"""

import numpy as np
import torch

from audits import many_draws
from pipelines.config.generators import Datalens
from pipelines.privacy.audits import two_worlds
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import Noise
from pipelines.synthesis.base import Space
from pipelines.synthesis.datalens import generator as datalens
from pipelines.synthesis.datalens import votes

SPACE = Space(height=2, width=2, channels=1, classes=2)
SETTINGS = Datalens(
    teachers=12,
    teacher_network="mlp",
    generator_network="mlp",
    steps=2,
    batch=2,
    top_k=3,
    clip=1e-5,
    stochastic=True,
    threshold=None,
    centre_votes=False,
    vote_cutoff=None,
    labels="in_turn",
    wrong_labels=True,
    teacher_steps=1,
    teacher_warmup=1,
    generator_steps=1,
    step_length=0.1,
    learning_rate=1e-3,
    generator_learning_rate=1e-3,
    teacher_hidden=4,
    latent=2,
    weak_plan="warn",
)


def audit(budget: Budget, *, runs: int, noise: Noise, settings: Datalens = SETTINGS) -> Verdict:
    """`runs` releases of every vote sum in each world, with the noise that `datalens.plan` planned."""
    plan = datalens.plan(settings, budget, SPACE)
    details = plan.statement.details
    absent, present = (totals(settings, flipped=flipped) for flipped in (False, True))
    difference, centre = present - absent, (absent + present) / 2
    scale = details["lattice_steps_per_vote"]
    scores = [
        many_draws.projected(
            many_draws.draws(total * scale, runs, sigma=details["sigma"], scale=scale, noise=noise),
            centre,
            difference,
        )
        for total in (absent, present)
    ]
    return two_worlds.audit(
        *scores, mu_claimed=plan.statement.mu, delta=budget.delta, confidence=many_draws.CONFIDENCE
    )


def totals(settings: Datalens, *, flipped: bool) -> np.ndarray:
    """int64 [T, B, d]: the vote sums of every step; `flipped` is the world in which the last teacher disagrees."""
    gradients = _gradients(settings)
    if flipped:
        gradients[-1] *= -1
    stream = torch.Generator().manual_seed(0)
    steps = [
        votes.tally(
            votes.vote(
                gradients,
                top_k=settings.top_k,
                clip=settings.clip,
                stochastic=settings.stochastic,
                generator=stream,
            )
        )
        for _ in range(settings.steps)
    ]
    return np.stack(steps)


def _gradients(settings: Datalens) -> torch.Tensor:
    """[N, B, d], magnitudes all different, so that the top k are the same for both signs."""
    pixels = SPACE.height * SPACE.width * SPACE.channels
    signs = torch.randn(
        settings.teachers, settings.batch, pixels, generator=torch.Generator().manual_seed(1)
    ).sign()
    return signs * torch.arange(1.0, pixels + 1)
