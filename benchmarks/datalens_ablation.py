"""Rehearses `datalens` without privacy, with one option changed at a time.

    python -m benchmarks.datalens_ablation --images ../shared/datasets     # a CPU-minute per row
    python -m benchmarks.datalens_ablation --datasets fashion_mnist --options shipped "constant rate"

A rehearsal has a tenth of the teachers or less, as many records for each, and noise scaled with
them: sigma / N is what the shipped settings have on all 60,000 records at epsilon 10, with 100 steps.
MNIST ships twice as many, which is one of the options. The noise is seeded, so nothing here is a
release.

The validation images are training images that no teacher holds, and no test image is read. So
settings may be chosen here. Seeds differ by one to three percentage points. Rows are single runs
unless more seeds are given. Stored rows are not measured again.
"""

import argparse
import io
import math
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

from benchmarks import common
from benchmarks.common import cpu_seconds, keep, kept, show
from pipelines import config, seeds
from pipelines.config.generators import Datalens
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import SeededForTests
from pipelines.synthesis import base, release
from pipelines.synthesis.datalens import generator as datalens
from pipelines.synthesis.datalens.plan import settled
from pipelines.training import classifier

NAME = "datalens_ablation"
# Number of records of the client that is rehearsed.
RECORDS = 60_000
# Number of teachers of the rehearsal, five blocks.
TEACHERS = 80
# Number of generator steps.
STEPS = 100
VALIDATION = 10_000
IMAGES = 5_000
RECIPE = {"epochs": 5, "batch": 128, "learning_rate": 2e-3, "one_cycle": True}
HIDDEN = ("settings",)
# With the most teachers.
SMALL_BUDGET = {"epsilon": 1.0, "teachers": 4000}
# Changes to the shipped settings. A float in the place of a count is a factor.
OPTIONS = {
    "shipped": {},
    "no noise": {"epsilon": math.inf},
    "epsilon 5": {"epsilon": 5.0},
    "epsilon 5, few latents": {"epsilon": 5.0, "latent": 8},
    "epsilon 1": {"epsilon": 1.0},
    "epsilon 1, 4,000 teachers": SMALL_BUDGET,
    "epsilon 1, 4,000 teachers, few latents": {**SMALL_BUDGET, "latent": 8},
    "epsilon 1, 4,000 teachers, few latents, twice the steps": {
        **SMALL_BUDGET,
        "latent": 8,
        "steps": 2.0,
    },
    "no wrong labels": {"wrong_labels": False},
    "uniform labels": {"labels": "uniform"},
    "votes not smoothed": {"vote_cutoff": None},
    "paper's generator": {"generator_network": "paper"},
    "mlp generator": {"generator_network": "mlp"},
    "few latents": {"latent": 8},
    "constant rate": {"cosine": False},
    "one generator step": {"generator_steps": 1},
    "half the top_k": {"top_k": 0.5},
    "twice the top_k": {"top_k": 2.0},
    "paper's warm-up": {"teacher_warmup": 10},
    "threshold 0.2": {"threshold": 0.2},
    "centred votes": {"centre_votes": True},
    "four teacher steps": {"teacher_steps": 4},
    "paper's teachers": {"teacher_network": "paper"},
    "half the steps": {"steps": 0.5},
    "twice the steps": {"steps": 2.0},
    "three times the steps": {"steps": 3.0},
    "twice the steps and the top_k": {"steps": 2.0, "top_k": 2.0},
    "half the teachers": {"teachers": 0.5},
    "twice the teachers": {"teachers": 2.0},
}
COUNTS = ("steps", "teachers", "top_k")
DATASETS = ("mnist", "fashion_mnist")
EPSILON = 10.0


def shipped_settings(params: config.Params, dataset: str = "mnist") -> Datalens:
    """Returns a data set's settings with STEPS, and the number of teachers that these take here."""
    settings = params.generator(dataset, "datalens").model_copy(update={"steps": STEPS})
    space = release.public_space(params.profiles[dataset], RECORDS)
    budget = Budget(EPSILON, params.privacy.delta)
    return settled(settings, budget, space).model_copy(update={"teachers_rule": None})


def asked(shipped: Datalens, changes: dict) -> tuple[Datalens, float]:
    """Returns the settings and the epsilon of one of OPTIONS."""
    changes = dict(changes)
    epsilon = changes.pop("epsilon", EPSILON)
    for name in COUNTS:
        if isinstance(changes.get(name), float):
            changes[name] = round(getattr(shipped, name) * changes[name])
    return shipped.model_copy(update={**changes, "weak_plan": "warn"}), epsilon


def rehearsed(settings: Datalens, budget: Budget, space: base.Space) -> base.Plan:
    """Returns the plan of few teachers with the sigma / N of all; it claims no privacy.

    Args:
        settings: Settings of the whole run.
        budget: Epsilon and delta of the whole run.
        space: The public shape and classes of the images.
    """
    whole = datalens.plan(settings, budget, space)
    # what counts at the noise of all counts here
    few = whole.settings.model_copy(update={"teachers": TEACHERS})
    plan = datalens.plan(few, Budget(math.inf, budget.delta), space)
    details = whole.statement.details
    plan.statement.details.update(
        sigma=details["sigma_over_N"] * TEACHERS,
        sigma_over_N=details["sigma_over_N"],
        lattice_steps_per_vote=details["lattice_steps_per_vote"],
    )
    return plan


def measure(
    params: config.Params,
    settings: Datalens,
    epsilon: float,
    seed: int,
    train: Images,
    *,
    records: int = RECORDS,
    dataset: str = "mnist",
) -> dict:
    """Rehearses one run and scores a classifier on its images.

    Args:
        params: The parameters of params.yaml.
        settings: Settings of the whole run.
        epsilon: Epsilon of the whole run.
        seed: Seed of the rehearsal.
        train: The data set's training images.
        records: Number of records of the client that is rehearsed.
        dataset: The data set's name.

    Returns:
        {"sigma_over_N", "accuracy" on the validation images, "cpu_seconds" of the generator}.
    """
    profile = params.profiles[dataset]
    plan = rehearsed(settings, Budget(epsilon, params.privacy.delta), release.public_space(profile))
    order = np.random.default_rng(seeds.derive(seed, NAME)).permutation(len(train))
    shard = train[order[: TEACHERS * records // settings.teachers]]
    held_out = train[order[-VALIDATION:]]
    start = cpu_seconds()
    state = datalens.fit(shard, plan, SeededForTests(seed), seed)
    seconds = cpu_seconds() - start
    model = classifier.new(profile, seed)
    images = datalens.sample(state, IMAGES, seed)
    classifier.fit(model, images, seed=seed, augmentation=profile.augmentation, **RECIPE)
    return {
        "sigma_over_N": plan.statement.details["sigma_over_N"],
        "accuracy": scores(model, held_out)["accuracy"],
        "cpu_seconds": seconds,
    }


def main() -> None:
    """Measures the options that are not stored yet, and prints all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--images", type=Path, default=Path("../shared/datasets"), help="MNIST/raw/*.gz lies in it"
    )
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument("--options", nargs="+", choices=OPTIONS, default=list(OPTIONS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    arguments = parser.parse_args()
    params = config.load()
    for dataset in arguments.datasets:
        train, _ = common.read(params, dataset, arguments.images)
        shipped = shipped_settings(params, dataset)
        for seed in arguments.seeds:
            for option in arguments.options:
                _add(params, shipped, {"dataset": dataset, "option": option, "seed": seed}, train)
    show(kept(NAME), hidden=HIDDEN)


def _add(params: config.Params, shipped: Datalens, key: dict, train: Images) -> None:
    """Measures an option and stores it, unless it is stored under the same settings."""
    settings, epsilon = asked(shipped, OPTIONS[key["option"]])
    used = {
        "version": datalens.VERSION,
        "images": IMAGES,
        "teachers_rehearsed": TEACHERS,
        **RECIPE,
        **settings.model_dump(exclude={"teachers_rule"}),
    }
    if any(common.has(row, {**key, "settings": used}) for row in kept(NAME)):
        return
    # The generator's own lines are not shown.
    with redirect_stdout(io.StringIO()):
        run = measure(params, settings, epsilon, key["seed"], train, dataset=key["dataset"])
    rows = [*common.without(kept(NAME), key), {**key, **run, "settings": used}]
    keep(NAME, sorted(rows, key=_place), rehearsal="no privacy")


def _place(row: dict) -> tuple[int, int, int]:
    """Returns the place of a row in the table."""
    return DATASETS.index(row["dataset"]), list(OPTIONS).index(row["option"]), row["seed"]


if __name__ == "__main__":
    main()
