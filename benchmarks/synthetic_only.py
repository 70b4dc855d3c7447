"""Measures what a model learns from the clients' synthetic sets alone: global test accuracy on digits.

    python -m benchmarks.synthetic_only            # about two minutes

It calls the stages' functions without DVC. Every client has the same epsilon, and the noise comes
from the operating system. It runs three seeds, and each seed cuts other shards.
"""

import argparse
import io
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

from benchmarks import common
from benchmarks.common import publish
from pipelines import config, seeds
from pipelines.config.generators import GENERATORS
from pipelines.datasets import labelled_images, partitions
from pipelines.evaluation.scoring import scores
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import base, release
from pipelines.training import classifier


def accuracy(
    params: config.Params, generator: str, epsilon: float, seed: int, dataset: str = "digits"
) -> float:
    """Deals, releases, samples, pools, trains and tests with one seed.

    Args:
        params: The parameters of params.yaml.
        generator: Name of the generator.
        epsilon: Budget of every client.
        seed: Seed of the run.
        dataset: Name of the data set.

    Returns:
        The accuracy on the global test set.
    """
    profile = params.profiles[dataset]
    pool, test = common.read(params, dataset, Path(params.prepare.root))
    rng = np.random.default_rng(seeds.derive(seed, "synthetic_only"))
    if test is None:
        test, pool = common.split(pool, params.prepare.test_fraction, rng)
    module = base.load(generator)
    budget = Budget(epsilon, params.privacy.delta)
    settings = params.generator(dataset, generator)
    plan = module.plan(settings, budget, release.public_space(profile))
    sets = []
    for client, shard in partitions.cut(pool, params.partition, rng).items():
        state = module.fit(shard.train, plan, OsEntropy(), seeds.derive(seed, generator, client))
        sets.append(module.sample(state, profile.images, seeds.derive(seed, "sample", client)))
    images = labelled_images.concatenate(sets)
    model = classifier.on_synthetic(images, profile, params.training(dataset, "pooled"), seed)
    return scores(model, test)["accuracy"]


def main() -> None:
    """Measures all generators and epsilons, prints and stores the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--generators", nargs="+", default=["dp_moments", "datalens"], choices=GENERATORS
    )
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    params = config.load()
    rows = []
    for generator in arguments.generators:
        for epsilon in arguments.epsilons:
            runs = []
            for seed in range(arguments.seeds):
                # The generators' own lines are not shown.
                with redirect_stdout(io.StringIO()):
                    runs.append(accuracy(params, generator, epsilon, seed))
            rows.append(
                {
                    "generator": generator,
                    "epsilon": epsilon,
                    "accuracy": float(np.mean(runs)),
                    "spread": float(np.std(runs)),
                    "runs": runs,
                }
            )
    publish(
        "synthetic_only", rows, seeds=arguments.seeds, dataset="digits", delta=params.privacy.delta
    )


if __name__ == "__main__":
    main()
