"""Audits `datalens` in two worlds: all its noisy vote sums against the mu of its plan.

Worst case: one teacher's gradients change sign on the same coordinates, on every image of every
step, which is what one record could at most do. The other teachers' gradients exceed `clip`, so
that their stochastic signs are certain.
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
    """Releases every vote sum in each world, with the noise that `datalens.plan` planned.

    Args:
        budget: The budget of the plan.
        runs: Releases in each world.
        noise: The noise source.
        settings: The settings of the plan.
    """
    plan = datalens.plan(settings, budget, SPACE)
    details = plan.statement.details
    absent = totals(settings, flipped=False)
    present = totals(settings, flipped=True)
    scale = details["lattice_steps_per_vote"]
    scores = []
    for total in (absent, present):
        released = many_draws.draws(
            total * scale, runs, sigma=details["sigma"], scale=scale, noise=noise
        )
        scores.append(many_draws.projected(released, (absent + present) / 2, present - absent))
    return two_worlds.audit(
        *scores, mu_claimed=plan.statement.mu, delta=budget.delta, confidence=many_draws.CONFIDENCE
    )


def totals(settings: Datalens, *, flipped: bool) -> np.ndarray:
    """Returns the vote sums of every step, int64 [T, B, d].

    `flipped` is the world in which the last teacher disagrees.
    """
    gradients = _gradients(settings)
    if flipped:
        gradients[-1] *= -1
    stream = torch.Generator().manual_seed(0)
    steps = []
    for _ in range(settings.steps):
        ballots = votes.vote(
            gradients,
            top_k=settings.top_k,
            clip=settings.clip,
            stochastic=settings.stochastic,
            generator=stream,
        )
        steps.append(votes.tally(ballots))
    return np.stack(steps)


def _gradients(settings: Datalens) -> torch.Tensor:
    """Returns image gradients [N, B, d] whose magnitudes all differ.

    So the top k are the same for both signs.
    """
    pixels = SPACE.height * SPACE.width * SPACE.channels
    stream = torch.Generator().manual_seed(1)
    signs = torch.randn(settings.teachers, settings.batch, pixels, generator=stream).sign()
    return signs * torch.arange(1.0, pixels + 1)
