"""Measures what joint noise is worth: `dp_moments` with own noise against noise shared by all clients.

    python -m benchmarks.joint_release            # two CPU-minutes

A classifier learns from synthetic images alone, and is scored on the global test images of digits.
Clients have equally many records each, dealt at random. `own`: each client releases its own two
sums, and its own images, as the stages do. `joint`: the two sums over all clients are released, and
one generator makes all images. Its noise comes in shares (secure_sums/noise_shares.py), and nobody
may drop out. So a share has the variance sigma^2 / (K - t) against t colluding clients.

**This is a simulation.** The shares are added in this process by a plain sum, which a secure sum
equals to the last bit. No stage makes a joint release. Quantity, sensitivity and neighbours are those
of `dp_moments`: two sums of L2 sensitivity 1, where one record is added or removed at one client.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks import common
from pipelines import config, seeds
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.evaluation.scoring import scores
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import Noise, OsEntropy
from pipelines.privacy.secure_sums.noise_shares import SharePlan, noisy, planned
from pipelines.synthesis import dp_moments, release
from pipelines.synthesis.base import Plan
from pipelines.synthesis.dp_moments_estimates import estimate_means
from pipelines.synthesis.dp_moments_sums import encode, first_sum, second_sum
from pipelines.training import classifier

NAME = "joint_release"
DATASET = "digits"
CLIENTS = 5
EPSILONS = (1.0, 3.0, 10.0)


def dealt(images: Images, count: int, rng: np.random.Generator) -> list[Images]:
    """Returns equal parts of images, dealt at random. A remainder is left out."""
    rows = rng.permutation(len(images))
    size = len(rows) // count
    parts = []
    for number in range(count):
        parts.append(images[rows[number * size : (number + 1) * size]])
    return parts


def own_images(parts: list[Images], plan: Plan, count: int, seed: int) -> Images:
    """Returns the images of all clients, each of which has a generator of its own.

    Args:
        parts: The records of each client.
        plan: The plan of each client's releases.
        count: Images of each client.
        seed: Of the samples.
    """
    sets = []
    for number, records in enumerate(parts):
        state = dp_moments.fit(records, plan, OsEntropy(), seed)
        sets.append(dp_moments.sample(state, count, seeds.derive(seed, "sample", str(number))))
    return concatenate(sets)


def joint_images(
    parts: list[Images], plan: Plan, shares: SharePlan, count: int, seed: int
) -> Images:
    """Returns images of one generator, which is fitted to the sums over all clients.

    Args:
        parts: The records of each client.
        plan: The plan of the two releases, as one client alone would have it.
        shares: The plan of the noise.
        count: Images of each client.
        seed: Of the samples.
    """
    state = joint_state(parts, plan, shares, OsEntropy())
    return dp_moments.sample(state, count * len(parts), seeds.derive(seed, "sample", "joint"))


def joint_state(
    parts: list[Images], plan: Plan, shares: SharePlan, noise: Noise
) -> dict[str, np.ndarray]:
    """Returns the state of one generator, from the two noisy sums over all clients.

    It is `dp_moments.fit` with sums over clients.

    Args:
        parts: The records of each client.
        plan: The plan of the two releases.
        shares: The plan of the noise.
        noise: The source of each client's share of noise.
    """
    settings = plan.settings
    space = plan.space
    scale = shares.scale
    codes = [encode(part.pixels, settings, space) for part in parts]
    first = []
    for u, part in zip(codes, parts):
        client_sum = first_sum(u, part.labels, settings, space, scale)
        first.append(noisy(client_sum, shares, 0, noise=noise))
    means, counts = estimate_means(np.sum(first, axis=0) / scale, settings)
    second = []
    for u, part in zip(codes, parts):
        client_sum = second_sum(u, part.labels, means, settings, scale)
        second.append(noisy(client_sum, shares, 1, noise=noise))
    total = np.sum(second, axis=0) / scale
    return dp_moments.state_of(means, counts, total, sigmas_of_sums(shares), settings, space)


def sigmas_of_sums(shares: SharePlan) -> tuple[float, float]:
    """Returns the deviation of the noise in both sums over all clients, in original units."""
    root = shares.clients**0.5
    return shares.share(0) * root, shares.share(1) * root


def shared_noise(plan: Plan, budget: Budget, colluding: int) -> SharePlan:
    """Returns the noise of both sums in shares, where nobody may drop out.

    Args:
        plan: The plan of the two releases.
        budget: The budget.
        colluding: t.
    """
    details = plan.statement.details
    return planned(
        budget,
        sigmas=tuple(details["sigma"]),
        draws=details["released_numbers"],
        clients=CLIENTS,
        threshold=CLIENTS,
        colluding=colluding,
    )


def measured(params: config.Params, epsilon: float, colluding: int | None, count: int) -> dict:
    """Returns a row: the accuracy of one kind of release.

    Args:
        params: The parameters of params.yaml.
        epsilon: The budget of each record.
        colluding: t of a joint release; None for own noise.
        count: How many seeds.
    """
    profile = params.profiles[DATASET]
    budget = Budget(epsilon, params.privacy.delta)
    settings = params.generator(DATASET, "dp_moments")
    plan = dp_moments.plan(settings, budget, release.public_space(profile))
    runs = []
    for seed in range(count):
        images, test = common.read(params, DATASET, Path(params.prepare.root))
        rng = np.random.default_rng(seeds.derive(seed, NAME))
        if test is None:
            test, images = common.split(images, params.prepare.test_fraction, rng)
        parts = dealt(images, CLIENTS, rng)
        if colluding is None:
            released = own_images(parts, plan, profile.images, seed)
        else:
            shares = shared_noise(plan, budget, colluding)
            released = joint_images(parts, plan, shares, profile.images, seed)
        pooled = params.training(DATASET, "pooled")
        model = classifier.on_synthetic(released, profile, pooled, seed)
        runs.append(scores(model, test)["accuracy"])
    return {
        "dataset": DATASET,
        "clients": CLIENTS,
        "records": len(parts[0]),
        "epsilon": epsilon,
        "release": "own" if colluding is None else "joint",
        "colluding": colluding,
        "accuracy": float(np.mean(runs)),
        "seeds": count,
        "runs": runs,
    }


def main() -> None:
    """Measures all rows, prints and stores the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    params = config.load()
    rows = []
    for epsilon in EPSILONS:
        for colluding in (None, 0, CLIENTS // 2):
            rows.append(measured(params, epsilon, colluding, arguments.seeds))
    common.publish(NAME, rows, delta=params.privacy.delta)


if __name__ == "__main__":
    main()
