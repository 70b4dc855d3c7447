"""What a model learns from the clients' synthetic sets alone: global test accuracy on digits.

    python -m benchmarks.synthetic_only            # about two minutes; no DVC, noise from the operating system

The stages' own functions with every client at the same epsilon, over three seeds. Each seed cuts other shards.
"""

import argparse
import io
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

from benchmarks.common import publish
from pipelines import config, seeds
from pipelines.config.generators import GENERATORS
from pipelines.datasets import labelled_images, partitions, sources
from pipelines.evaluation.scoring import scores
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import base, release
from pipelines.training import classifier


def accuracy(
    params: config.Params, generator: str, epsilon: float, seed: int, dataset: str = "digits"
) -> float:
    """One seed: deal, release, sample, pool, train, test."""
    profile = params.profiles[dataset]
    pool, test = sources.read(
        dataset,
        name=profile.source,
        classes=profile.classes,
        shape=profile.shape,
        root=Path(params.prepare.root),
    )
    rng = np.random.default_rng(seeds.derive(seed, "synthetic_only"))
    if test is None:
        test, pool = (
            pool[rows]
            for rows in partitions.split(pool.labels, [params.prepare.test_fraction], rng)
        )
    module = base.load(generator)
    budget, space = Budget(epsilon, params.privacy.delta), release.public_space(profile)
    plan = module.plan(params.generator(dataset, generator), budget, space)
    sets = []
    for client, shard in partitions.cut(pool, params.partition, rng).items():
        state = module.fit(shard.train, plan, OsEntropy(), seeds.derive(seed, generator, client))
        sets.append(
            module.sample(
                state, params.profiles[dataset].images, seeds.derive(seed, "sample", client)
            )
        )
    model = classifier.on_synthetic(
        labelled_images.concatenate(sets), profile, params.training(dataset, "pooled"), seed
    )
    return scores(model, test)["accuracy"]


def main() -> None:
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
            with redirect_stdout(io.StringIO()):  # the generators' own lines
                runs = [
                    accuracy(params, generator, epsilon, seed) for seed in range(arguments.seeds)
                ]
            mean, spread = float(np.mean(runs)), float(np.std(runs))
            rows.append(
                {
                    "generator": generator,
                    "epsilon": epsilon,
                    "accuracy": mean,
                    "spread": spread,
                    "runs": runs,
                }
            )
    publish(
        "synthetic_only", rows, seeds=arguments.seeds, dataset="digits", delta=params.privacy.delta
    )


if __name__ == "__main__":
    main()
