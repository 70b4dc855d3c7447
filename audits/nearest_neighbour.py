"""Attacks exported images by membership inference on scikit-learn's digits.

Half of the digits are members, by a coin each. A generator that copies its records is the control:
whatever it claims, it must be caught.
"""

from collections.abc import Callable

import numpy as np

from audits import datalens_votes
from pipelines.config.generators import DpMoments
from pipelines.datasets.labelled_images import Images, synthetic
from pipelines.datasets.sources import digits
from pipelines.privacy.audits import membership
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import Noise
from pipelines.synthesis import base
from pipelines.synthesis.base import Space

SPACE = Space(height=8, width=8, channels=1, classes=10)
# exported
IMAGES = 2000
# of training and sampling, never of noise
SEED = 1
DATALENS = {
    "teachers": 24,
    "steps": 60,
    "batch": 10,
    "top_k": 8,
    "teacher_steps": 2,
    "teacher_warmup": 10,
    "generator_steps": 5,
    "teacher_hidden": 32,
    "latent": 16,
}
SETTINGS = {
    "dp_moments": DpMoments(
        centre=0.3,
        cutoff=8,
        clip=3.0,
        count_weight=0.5,
        residual_clip=1.5,
        first_share=0.6,
        inflation=1.0,
        contrast=1.0,
        low_epsilon=None,
    ),
    "datalens": datalens_votes.SETTINGS.model_copy(update=DATALENS),
}

Export = Callable[[Images], Images]


def audit(name: str, budget: Budget, *, noise: Noise) -> Verdict:
    """Fits a generator of ours on the members, and attacks it through its images.

    Args:
        name: The generator's name.
        budget: The budget of its plan.
        noise: The noise source.
    """
    module = base.load(name)
    plan = module.plan(SETTINGS[name], budget, SPACE)

    def export(members: Images) -> Images:
        return module.sample(module.fit(members, plan, noise, SEED), IMAGES, SEED)

    return attacked(export, mu_claimed=plan.statement.mu, delta=budget.delta)


def attacked(export: Export, *, mu_claimed: float, delta: float) -> Verdict:
    """Attacks anything that makes images from records.

    Args:
        export: Takes the members and returns images.
        mu_claimed: The mu that it claims.
        delta: The delta of the claim in epsilon.
    """
    records, _ = digits()
    members = np.random.default_rng().random(len(records)) < 0.5
    distances = membership.nearest(records.pixels, export(records[members]).pixels)
    return membership.audit(
        distances, members, guesses=len(records) // 5, mu_claimed=mu_claimed, delta=delta
    )


def copies(members: Images) -> Images:
    """Returns the records themselves, as the control."""
    return synthetic(members.pixels, members.labels)
