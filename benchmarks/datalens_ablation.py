"""A rehearsal without privacy: what each option of `datalens` is worth on MNIST, one changed at a time.

    python -m benchmarks.datalens_ablation --images ../shared/datasets     # a few CPU-minutes per row

A tenth and less of the teachers, as many records each, and noise scaled with them: sigma / N is what the shipped
settings have on all 60,000 records at epsilon 10. Noise is seeded, and the validation images are training images that
no teacher holds: no test image is read. So settings may be chosen here, and nothing here is a release. Seeds differ by
a point or three; rows are single runs unless more seeds are asked for. What is kept is not measured again.
"""

import argparse
import io
import math
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

from benchmarks.common import cpu_seconds, keep, kept, show
from pipelines import config, seeds
from pipelines.config.generators import Datalens
from pipelines.datasets import sources
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import SeededForTests
from pipelines.synthesis import base, release
from pipelines.synthesis.datalens import generator as datalens
from pipelines.training import classifier

NAME = "datalens_ablation"
RECORDS = 60_000  # of the client that is rehearsed
TEACHERS = 80  # in the rehearsal, five blocks
VALIDATION = 10_000
IMAGES = 5_000
RECIPE = {"epochs": 5, "batch": 128, "learning_rate": 2e-3, "one_cycle": True}
HIDDEN = ("settings",)
OPTIONS = {
    "shipped": {},
    "no noise": {"epsilon": math.inf},
    "epsilon 1": {"epsilon": 1.0},
    "no wrong labels": {"wrong_labels": False},
    "uniform labels": {"labels": "uniform"},
    "votes not smoothed": {"vote_cutoff": None},
    "paper's generator": {"generator_network": "paper"},
    "mlp generator": {"generator_network": "mlp"},
    "paper's latent": {"latent": 50},
    "one generator step": {"generator_steps": 1},
    "paper's top_k": {"top_k": 200},
    "paper's warm-up": {"teacher_warmup": 10},
    "threshold 0.2": {"threshold": 0.2},
    "centred votes": {"centre_votes": True},
    "paper's teachers": {"teacher_network": "paper"},
    "half the steps": {"steps": 0.5},
    "twice the steps": {"steps": 2.0},
    "half the teachers": {"teachers": 0.5},
    "twice the teachers": {"teachers": 2.0},
}


def asked(shipped: Datalens, changes: dict) -> tuple[Datalens, float]:
    """(settings, epsilon); changes of a count are factors."""
    epsilon = changes.get("epsilon", 10.0)
    counts = {
        name: round(getattr(shipped, name) * changes[name])
        for name in ("steps", "teachers")
        if name in changes
    }
    values = {name: value for name, value in changes.items() if name != "epsilon"}
    return shipped.model_copy(update={**values, **counts, "weak_plan": "warn"}), epsilon


def rehearsed(settings: Datalens, budget: Budget, space: base.Space) -> base.Plan:
    """The plan of fewer teachers with the sigma / N of all; it claims no privacy."""
    whole = datalens.plan(settings, budget, space).statement.details
    few = settings.model_copy(update={"teachers": TEACHERS})
    plan = datalens.plan(few, Budget(math.inf, budget.delta), space)
    scaled = {"sigma": whole["sigma_over_N"] * TEACHERS, "sigma_over_N": whole["sigma_over_N"]}
    plan.statement.details.update(scaled, lattice_steps_per_vote=whole["lattice_steps_per_vote"])
    return plan


def measure(
    params: config.Params, settings: Datalens, epsilon: float, seed: int, train: Images
) -> dict:
    profile = params.profiles["mnist"]
    plan = rehearsed(settings, Budget(epsilon, params.privacy.delta), release.public_space(profile))
    order = np.random.default_rng(seeds.derive(seed, NAME)).permutation(len(train))
    shard, held_out = (
        train[order[: TEACHERS * RECORDS // settings.teachers]],
        train[order[-VALIDATION:]],
    )
    start = cpu_seconds()
    state = datalens.fit(shard, plan, SeededForTests(seed), seed)
    seconds = cpu_seconds() - start
    model = classifier.new(profile, seed)
    made = datalens.sample(state, IMAGES, seed)
    classifier.fit(model, made, seed=seed, augmentation=profile.augmentation, **RECIPE)
    ratio = plan.statement.details["sigma_over_N"]
    return {
        "sigma_over_N": ratio,
        "accuracy": scores(model, held_out)["accuracy"],
        "cpu_seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--images", type=Path, default=Path("../shared/datasets"), help="MNIST/raw/*.gz lies in it"
    )
    parser.add_argument("--options", nargs="+", choices=OPTIONS, default=list(OPTIONS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    arguments = parser.parse_args()
    params = config.load()
    profile = params.profiles["mnist"]
    train, _ = sources.read(
        "mnist", name="mnist", classes=10, shape=profile.shape, root=arguments.images
    )
    shipped = params.generator("mnist", "datalens")
    for seed in arguments.seeds:
        for option in arguments.options:
            _add(params, shipped, {"option": option, "seed": seed}, train)
    show(kept(NAME), hidden=HIDDEN)


def _add(params: config.Params, shipped: Datalens, key: dict, train: Images) -> None:
    """Measures what is not kept under these settings, and keeps it."""
    settings, epsilon = asked(shipped, OPTIONS[key["option"]])
    used = {
        "version": datalens.VERSION,
        "images": IMAGES,
        "teachers_rehearsed": TEACHERS,
        **RECIPE,
        **settings.model_dump(),
    }
    if any(key.items() <= row.items() and row["settings"] == used for row in kept(NAME)):
        return
    with redirect_stdout(io.StringIO()):
        run = measure(params, settings, epsilon, key["seed"], train)
    others = [row for row in kept(NAME) if not key.items() <= row.items()]
    rows = [*others, {**key, **run, "settings": used}]
    keep(
        NAME,
        sorted(rows, key=lambda row: (list(OPTIONS).index(row["option"]), row["seed"])),
        rehearsal="no privacy",
    )


if __name__ == "__main__":
    main()
