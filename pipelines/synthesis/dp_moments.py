"""Fits `dp_moments`: a Gaussian per class, from two noisy releases of low-frequency DCT moments.

Release 1: per class, the sum of clipped coefficients u / C and the count, weighted to unit norm
together. Release 2: per class, the sum of v v^T for residuals v = clip(u - m_y) / C2 around the
released means m. Each is a sum over records of a vector of L2 norm at most 1, so its sensitivity is
1 when one record is added or removed (2 when one is replaced, which is not claimed).

mu^2 is split by `first_share`. The adaptive composition of Gaussian releases is exact, because the
split is fixed beforehand and release 2 looks at release 1 only. Everything after the two releases
is post-processing. Accounted in `plan`; released in `fit`. A fit takes two CPU-seconds.

`dp_moments_sums` makes the two sums, and `dp_moments_estimates` reads moments from them.
"""

from collections.abc import Sequence

import numpy as np

from pipelines.config.generators import DpMoments
from pipelines.datasets.labelled_images import Images, synthetic
from pipelines.lattice import lattice
from pipelines.privacy.discrete_gaussian import Budget, release
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.synthesis.base import HERE, Plan, Space, Where, stated
from pipelines.synthesis.dp_moments_estimates import (
    LEAST_COUNT,
    estimate_means,
    estimate_roots,
    keep_classes,
)
from pipelines.synthesis.dp_moments_sums import (
    coefficients_of,
    decode,
    encode,
    first_sum,
    parts_of,
    second_sum,
    weights,
)

KNOWN_FAILURES = (
    "one Gaussian per class: blurred, unimodal; rare classes may be lost below the noise"
)
# of the mechanism, in the ledger: raise it when the same parameters would release something else
VERSION = 1
IDENTITY = Identity(
    consequences=frozenset(
        {
            "coefficients",
            "hyperparameters",
            "labels",
            "lattice_steps_per_unit",
            "noise",
            "released_numbers",
            "sensitivity",
            "sigma",
        }
    ),
    # the plan's settings hold what follows from it
    free=frozenset({"settings.low_epsilon"}),
    neutral={"settings.inflation": 1.0, "settings.contrast": 1.0},
)


def plan(settings: DpMoments, budget: Budget, space: Space) -> Plan:
    """Splits the budget between the two releases. No private record is read.

    Args:
        settings: The settings of `synthesis.dp_moments`. Below the epsilon that `low_epsilon`
            names, its values replace them.
        budget: The budget, which the two releases spend whole.
        space: What is public about the images.

    Raises:
        UserError: Delta is too small for the lattice of the noise.
    """
    low = settings.low_epsilon
    if low and budget.epsilon < low.below:
        overrides = low.model_dump(exclude={"below"})
        settings = settings.model_copy(update=overrides)
    p = coefficients_of(settings, space)
    draws = space.classes * (p + 1) + space.classes * p * (p + 1) // 2
    sigma1 = budget.sigma(settings.first_share)
    sigma2 = budget.sigma(1 - settings.first_share)
    scale = lattice(budget, sigmas=(sigma1, sigma2), draws=draws)
    details = {
        "sensitivity": 1.0,
        "sigma": [sigma1, sigma2],
        "coefficients": p,
        "released_numbers": draws,
        "lattice_steps_per_unit": scale,
        "settings": settings.model_dump(exclude={"low_epsilon"}),
        "labels": "noisy histogram, part of release 1",
    }
    statement = stated(
        "dp_moments (two Gaussian releases of class-wise DCT moments)", budget, details
    )
    line = (
        f"dp_moments: 2 releases of {draws} numbers, noise {sigma1:.3g} and {sigma2:.3g} "
        "at sensitivity 1"
    )
    return Plan(settings, space, statement, lines=(line,))


def fit(
    shard: Images, plan: Plan, noise: Noise, seed: int, where: Where = HERE
) -> dict[str, np.ndarray]:
    """Makes the two releases and turns them into a mean and a covariance root per class.

    It is done in seconds, so a killed run has nothing worth saving.

    Args:
        shard: The client's private records.
        plan: The plan, from `plan`.
        noise: The noise source.
        seed: Not used: all that is random here is the noise.
        where: Not used.

    Returns:
        The state: means [K, p], roots [K, p, p], histogram [K], count (noisy) and public settings.
    """
    details = plan.statement.details
    sigmas = tuple(details["sigma"])
    scale = details["lattice_steps_per_unit"]
    released: list[np.ndarray] = []
    for sigma in sigmas:
        total = next_sum(shard, plan, scale, released)
        released.append(release(total, sigma=sigma, scale=scale, noise=noise))
    return state_of(plan, sigmas, released)


def sum_shapes(plan: Plan) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns the shapes of the two sums, [K, p + 1] and [K, p (p + 1) / 2]."""
    p = plan.statement.details["coefficients"]
    return (plan.space.classes, p + 1), (plan.space.classes, p * (p + 1) // 2)


def next_sum(shard: Images, plan: Plan, scale: int, released: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the first sum over records, or the second one, which looks at the first as released.

    Args:
        shard: Private records. What is returned is private, too.
        plan: The plan, from `plan`.
        scale: Lattice steps per unit.
        released: What was released before, in original units: nothing, or the first sum.

    Returns:
        int64 of the shape that `sum_shapes` says, in lattice steps.
    """
    settings = plan.settings
    u = encode(shard.pixels, settings, plan.space)
    if not released:
        return first_sum(u, shard.labels, settings, plan.space, scale)
    means, _ = estimate_means(released[0], settings, parts_of(settings, plan.space))
    return second_sum(u, shard.labels, means, settings, scale)


def state_of(
    plan: Plan, sigmas: tuple[float, float], released: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Returns the state of a generator, from what was released. No private record is read.

    Args:
        plan: The plan.
        sigmas: The deviation of the noise in both sums, in original units.
        released: Both sums with noise, in original units.
    """
    settings = plan.settings
    first, second = released
    parts = parts_of(settings, plan.space)
    means, counts = estimate_means(first, settings, parts)
    histogram = keep_classes(counts, sigmas[0] / weights(settings)[1])
    return {
        "means": means,
        "roots": estimate_roots(second, counts, histogram > 0, sigmas[1], settings, parts),
        "histogram": histogram,
        # of records, with noise
        "count": np.array(max(counts.sum(), LEAST_COUNT)),
        "centre": np.array(settings.centre),
        "cutoff": np.array(settings.cutoff),
        "contrast": np.array(settings.contrast),
        "shape": np.array(plan.space.shape),
    }


def sample(state: dict[str, np.ndarray], count: int, seed: int) -> Images:
    """Draws images: labels from the noisy histogram, coefficients from their class's Gaussian.

    Args:
        state: The state, from `fit`.
        count: How many images to draw.
        seed: The seed of the draw.
    """
    rng = np.random.default_rng(seed)
    height, width, channels = state["shape"].tolist()
    space = Space(height, width, channels, len(state["histogram"]))
    labels = rng.choice(space.classes, size=count, p=state["histogram"])
    latent = rng.standard_normal((count, state["means"].shape[1]))
    u = state["means"][labels] + np.einsum("npq,nq->np", state["roots"][labels], latent)
    pixels = decode(u, float(state["centre"]), int(state["cutoff"]), space)
    return synthetic(0.5 + float(state["contrast"]) * (pixels - 0.5), labels)
