"""Plans `datalens`: the noise for its steps, and whether they can teach anything.

Only parameters are read.
"""

import math

from pipelines.config.generators import Datalens
from pipelines.config.places import file_of
from pipelines.config.values import mistake
from pipelines.errors import UserError
from pipelines.lattice import lattice
from pipelines.privacy.accounting import classic_epsilon
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Identity
from pipelines.synthesis.base import Plan, Space, stated
from pipelines.synthesis.datalens import votes

# fewer steps, or more than one sigma of noise per unanimous vote, train nothing (measured)
LEAST_STEPS = 50
LARGEST_RATIO = 1.0
IDENTITY = Identity(
    consequences=frozenset(
        {
            "N",
            "k",
            "B",
            "T",
            "epsilon_by_the_papers_accountant",
            "labels",
            "lattice_steps_per_vote",
            "noise",
            "sensitivity",
            "sigma",
            "sigma_over_N",
            "steps_affordable_at_sigma_N_1",
        }
    ),
    neutral={
        "settings.threshold": None,
        "settings.centre_votes": False,
        "settings.vote_cutoff": None,
    },
)


def plan(settings: Datalens, budget: Budget, space: Space) -> Plan:
    """Computes the noise for the steps, and whether they can teach anything.

    No private record is read.

    Args:
        settings: The settings of `synthesis.datalens`.
        budget: The budget, which the steps spend whole.
        space: What is public about the images.

    Raises:
        UserError: `top_k` exceeds the pixels of an image, `batch` is too small for the generator's
            batch norm, or the plan is weak and `weak_plan` is `refuse`.
    """
    pixels = math.prod(space.shape)
    _check(settings, pixels)
    sensitivity = votes.sensitivity(top_k=settings.top_k, batch=settings.batch)
    sigma = sensitivity * math.sqrt(settings.steps) / budget.mu if budget.private else 0.0
    ratio = sigma / settings.teachers
    affordable = _affordable(settings, budget)
    draws = settings.steps * settings.batch * pixels
    weak = _weakness(ratio, affordable)
    details = {
        "sensitivity": sensitivity,
        "sigma": sigma,
        "N": settings.teachers,
        "k": settings.top_k,
        "B": settings.batch,
        "T": settings.steps,
        "sigma_over_N": ratio,
        "steps_affordable_at_sigma_N_1": affordable,
        "lattice_steps_per_vote": lattice(budget, sigma=sigma or 1.0, draws=draws),
        "epsilon_by_the_papers_accountant": _papers_epsilon(budget),
        # it shapes no release
        "settings": settings.model_dump(exclude={"weak_plan"}),
        "labels": "uniform over the declared classes",
    }
    statement = stated("datalens (noisy teacher votes on image gradients)", budget, details)
    line = (
        f"datalens: {settings.steps} steps at sigma/N = {ratio:.2f}; "
        f"at sigma/N = 1 the budget buys {affordable} steps"
    )
    if weak and settings.weak_plan == "refuse":
        raise UserError(
            f"{line}. {weak[0]} Or set synthesis.datalens.weak_plan to 'warn'. "
            f"({file_of('synthesis.datalens.weak_plan')})"
        )
    return Plan(settings, space, statement, weak, (line,))


def _check(settings: Datalens, pixels: int) -> None:
    """Raises UserError if images or batches are too small for the settings."""
    if settings.top_k > pixels:
        raise mistake(
            "synthesis.datalens.top_k", settings.top_k, f"at most the {pixels} pixels of an image"
        )
    if settings.batch < 2 and settings.generator_network == "conv":
        raise mistake(
            "synthesis.datalens.batch",
            settings.batch,
            "at least 2 for the conv generator, which has batch norm",
        )


def _affordable(settings: Datalens, budget: Budget) -> int | str:
    """Returns the number of steps at sigma = N, which is T = (mu N / 2)^2 / (k B)."""
    if not budget.private:
        return "any number of"
    half = budget.mu * settings.teachers * LARGEST_RATIO / 2
    return int(half**2 / (settings.top_k * settings.batch))


def _papers_epsilon(budget: Budget) -> float:
    """Returns what DataLens' accountant would have printed for the same noise.

    It is larger, because that accountant's conversion is loose.
    """
    return classic_epsilon(mu=budget.mu, delta=budget.delta)[0] if budget.private else math.inf


def _weakness(ratio: float, affordable: int | str) -> tuple[str, ...]:
    """Returns why a plan can only make noise; nothing if it can work."""
    if isinstance(affordable, str) or (affordable >= LEAST_STEPS and ratio <= LARGEST_RATIO):
        return ()
    return (
        f"This plan can only make noise: the least that works is {LEAST_STEPS} steps at "
        f"sigma/N <= {LARGEST_RATIO:g}. Take dp_moments, or more teachers with at least about ten "
        "records each, a smaller top_k or batch, or a larger epsilon.",
    )
