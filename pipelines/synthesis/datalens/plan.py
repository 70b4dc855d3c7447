"""Plans `datalens`: the number of teachers, the noise, and whether they can teach anything.

Only parameters are read, and a number of records that somebody declared public. N must not follow
from the size of a shard: the release shows N, and one record more or less changes that size.
"""

import math

from pipelines.config.generators import AUTO, Datalens, TeachersRule
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
        UserError: As `planned`.
    """
    return planned(settings, budget, space)


def planned(
    settings: Datalens,
    budget: Budget,
    space: Space,
    excess: float = 1.0,
    name: str = "datalens",
) -> Plan:
    """Computes the plan of votes, which may be those of several clients.

    Args:
        settings, budget, space: As for `plan`.
        excess: How many times the planned noise there is in the end. It is more than once where
            several clients add shares of which some are not counted on.
        name: The generator's, for its errors.

    Raises:
        UserError: `top_k` exceeds the pixels of an image, `batch` is too small for the generator's
            batch norm, `teachers` is `auto` and no number of records is declared, or the plan is
            weak and `weak_plan` is `refuse`.
    """
    pixels = math.prod(space.shape)
    _check(settings, pixels, name)
    stated_settings = settings
    settings = settled(stated_settings, budget, space, excess, name)
    sigma = _sigma(settings, budget)
    ratio = sigma * excess / settings.teachers
    affordable = _affordable(settings, budget, excess)
    draws = settings.steps * settings.batch * pixels
    weak = _weakness(ratio, affordable)
    details = {
        "sensitivity": _sensitivity(settings),
        "sigma": sigma,
        "N": settings.teachers,
        "k": settings.top_k,
        "B": settings.batch,
        "T": settings.steps,
        "sigma_over_N": ratio,
        "steps_affordable_at_sigma_N_1": affordable,
        "lattice_steps_per_vote": lattice(budget, sigmas=(sigma or 1.0,), draws=draws),
        "epsilon_by_the_papers_accountant": _papers_epsilon(budget),
        # these shape no release; the rule does by the number of teachers, which stands here
        "settings": settings.model_dump(exclude={"weak_plan", "teachers_rule"}),
        "labels": "uniform over the declared classes",
    }
    statement = stated("datalens (noisy teacher votes on image gradients)", budget, details)
    line = (
        f"{name}: {_chosen(stated_settings, settings, space)}{settings.steps} steps at "
        f"sigma/N = {ratio:.2f}; "
        f"at sigma/N = 1 the budget buys {affordable} steps"
    )
    if weak and settings.weak_plan == "refuse":
        raise UserError(
            f"{line}. {weak[0]} Or set synthesis.{name}.weak_plan to 'warn'. "
            f"({file_of(f'synthesis.{name}.weak_plan')})"
        )
    return Plan(settings, space, statement, weak, (line,))


def settled(
    settings: Datalens,
    budget: Budget,
    space: Space,
    excess: float = 1.0,
    name: str = "datalens",
) -> Datalens:
    """Returns the settings with a number of teachers, and with what counts at their noise.

    Only public numbers decide.

    Args:
        settings: The settings of `synthesis.datalens`.
        budget: The budget of all steps.
        space: What is public about the images, the number of records among it.
        excess, name: As for `planned`.

    Raises:
        UserError: `teachers` is `auto`, and no number of records is declared.
    """
    chosen = _with_teachers(settings, budget, space, excess, name)
    instead = settings.high_noise
    if instead and _sigma(chosen, budget) * excess / chosen.teachers > instead.above:
        values = instead.model_dump(exclude={"above"})
        chosen = _with_teachers(settings.model_copy(update=values), budget, space, excess, name)
    return chosen.model_copy(update={"high_noise": None})


def _with_teachers(
    settings: Datalens, budget: Budget, space: Space, excess: float, name: str
) -> Datalens:
    """Returns the settings with the number of teachers that they name or come to."""
    sigma = _sigma(settings, budget) * excess
    return settings.model_copy(update={"teachers": _teachers(settings, sigma, space, name)})


def _teachers(settings: Datalens, sigma: float, space: Space, name: str) -> int:
    """Returns the number of teachers that the settings name or come to."""
    if settings.teachers != AUTO:
        return settings.teachers
    if space.records is None:
        rule = (
            "a number where no `records` are declared, by the data set's profile or the client's "
            "block: the size of a shard is private"
        )
        raise mistake(f"synthesis.{name}.teachers", AUTO, rule)
    return number_of_teachers(settings.teachers_rule, sigma, space.records)


def number_of_teachers(rule: TeachersRule, sigma: float, records: int) -> int:
    """Returns as few teachers as bring sigma / N down to what the rule asks for.

    Bounds on the records of each teacher come before that, and the most teachers before all.

    Args:
        rule: The rule.
        sigma: The noise of a sum of votes.
        records: The public number of records.

    Example:
        >>> rule = TeachersRule(noise=0.4, least_records=15, most_records=60, most_teachers=4000)
        >>> number_of_teachers(rule, sigma=1670.0, records=60_000)
        4000
        >>> number_of_teachers(rule, sigma=224.0, records=60_000)
        1000
    """
    quiet = math.ceil(sigma / rule.noise)
    fewest = records // rule.most_records
    most = min(records // rule.least_records, rule.most_teachers)
    return max(1, min(max(quiet, fewest), most))


def _sensitivity(settings: Datalens) -> float:
    return votes.sensitivity(top_k=settings.top_k, batch=settings.batch)


def _sigma(settings: Datalens, budget: Budget) -> float:
    """Returns the noise of each step, of which all steps spend the budget whole."""
    if not budget.private:
        return 0.0
    return _sensitivity(settings) * math.sqrt(settings.steps) / budget.mu


def _chosen(stated_settings: Datalens, settings: Datalens, space: Space) -> str:
    """Returns a phrase on how many teachers `auto` takes, empty if the user named a number."""
    if stated_settings.teachers != AUTO:
        return ""
    each = space.records / settings.teachers
    return (
        f"{settings.teachers} teachers, {each:.0f} records each if the public number of "
        f"{space.records} holds; "
    )


def _check(settings: Datalens, pixels: int, name: str) -> None:
    """Raises UserError if images or batches are too small for the settings."""
    if settings.top_k > pixels:
        raise mistake(
            f"synthesis.{name}.top_k", settings.top_k, f"at most the {pixels} pixels of an image"
        )
    if settings.batch < 2 and settings.generator_network == "conv":
        raise mistake(
            f"synthesis.{name}.batch",
            settings.batch,
            "at least 2 for the conv generator, which has batch norm",
        )


def _affordable(settings: Datalens, budget: Budget, excess: float) -> int | str:
    """Returns the number of steps at sigma = N, which is T = (mu N / 2)^2 / (k B).

    Noise beyond the planned one leaves fewer.
    """
    if not budget.private:
        return "any number of"
    half = budget.mu * settings.teachers * LARGEST_RATIO / 2 / excess
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
