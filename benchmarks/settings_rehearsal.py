"""Compares settings of `dp_moments` on training images alone: a fold of them takes the place of a test.

    python -m benchmarks.settings_rehearsal --images ../shared/datasets     # an hour of two cores
    python -m benchmarks.settings_rehearsal --images ../shared/datasets --cases "CIFAR-10" --epsilons 1

The official test part is never read. digits have none, and the fold is drawn from all images, by
other seeds than a benchmark's test part. A fifth of the training images is the fold, and the clients'
records are an IID sample of the rest, both drawn anew for each seed. One client releases by
`dp_moments`; several release together by `joint_moments`, and half of them may collude. The
classifier, its schedule and the number of synthetic images are those of `synthesis_utility`. The
last iterate is scored once.

Cells that are stored are not measured again, unless their settings have changed.
"""

import argparse
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import common, joint_sums, synthesis_utility
from pipelines import config, seeds
from pipelines.config.data import Augmentation
from pipelines.config.generators import DpMoments, LowEpsilon
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import dp_moments, release
from pipelines.synthesis.joint_plan import Group

NAME = "settings_rehearsal"
HELD_OUT = 0.2
HIDDEN = ("settings", "runs")


@dataclass(frozen=True)
class Case:
    """Describes settings to try.

    Attributes:
        dataset: Name of the data set.
        records: Training records of all clients.
        clients: How many clients release together; 1 releases alone.
        changes: Settings that differ from the shipped ones.
        is_augmented: The classifier is trained with the profile's augmentation.
    """

    dataset: str
    records: int
    clients: int = 1
    changes: dict = field(default_factory=dict)
    is_augmented: bool = True


# What digits' joint release would have from that of one client.
OF_ONE_CLIENT = {
    "cutoff": 8,
    "inflation": 1.0,
    "low_epsilon": LowEpsilon(below=3.0, residual_clip=1.5, first_share=0.8, inflation=1.0),
}
CASES = {
    "CIFAR-10": Case("cifar10", 39_000),
    "CIFAR-10, no mirror": Case("cifar10", 39_000, changes={"mirror": False}),
    "CIFAR-10, no augmentation": Case("cifar10", 39_000, is_augmented=False),
    "Fashion-MNIST, together": Case("fashion_mnist", 10_000, clients=4),
    "Fashion-MNIST, together, no low_signal": Case(
        "fashion_mnist", 10_000, clients=4, changes={"low_signal": None}
    ),
    "digits, together": Case("digits", 1_400, clients=5),
    "digits, together, as one client": Case("digits", 1_400, clients=5, changes=OF_ONE_CLIENT),
}


def settings_of(params: config.Params, case: Case) -> DpMoments:
    """Returns the settings of a case's generator."""
    name = "dp_moments" if case.clients == 1 else "joint_moments"
    return params.generator(case.dataset, name).model_copy(update=case.changes)


def augmentation_of(params: config.Params, case: Case) -> Augmentation | None:
    """Returns the warps that a case's classifier is trained with."""
    return params.profiles[case.dataset].augmentation if case.is_augmented else None


def score(params: config.Params, case: Case, epsilon: float, seed: int, images: Images) -> float:
    """Returns the accuracy on a fold of a classifier that saw released images alone.

    Args:
        params: The parameters of params.yaml.
        case: What is tried.
        epsilon: The budget of each client.
        seed: Seed of the fold, the clients, the images and the classifier.
        images: The training images of the data set.
    """
    rng = np.random.default_rng(seeds.derive(seed, NAME, case.dataset))
    fold, rest = common.split(images, HELD_OUT, rng)
    records, _ = common.split(rest, case.records / len(rest), rng)
    released = synthetic(params, case, epsilon, seed, records)
    model = synthesis_utility.taught(
        params, case.dataset, released, seed, augmentation_of(params, case)
    )
    return scores(model, fold)["accuracy"]


def synthetic(
    params: config.Params, case: Case, epsilon: float, seed: int, records: Images
) -> Images:
    """Returns what a case's clients release of their records.

    Args:
        params: The parameters of params.yaml.
        case: What is tried.
        epsilon: The budget of each client.
        seed: Seed of the images.
        records: The records of all clients.
    """
    settings = settings_of(params, case)
    budget = Budget(epsilon, params.privacy.delta)
    space = release.public_space(params.profiles[case.dataset], len(records))
    if case.clients == 1:
        plan = dp_moments.plan(settings, budget, space)
        state = dp_moments.fit(records, plan, OsEntropy(), seed)
    else:
        parts = [records[first :: case.clients] for first in range(case.clients)]
        group = Group(case.clients, settings.number_colluding(case.clients))
        state = joint_sums.fitted("joint_moments", settings, budget, space, group, parts, seed)
    return dp_moments.sample(state, synthesis_utility.IMAGES, seeds.derive(seed, "sample"))


def add(params: config.Params, name: str, epsilon: float, seed: int, images: Images) -> None:
    """Measures a cell and stores it, unless it is stored under the same settings.

    Args:
        params: The parameters of params.yaml.
        name: A key of CASES.
        epsilon: The budget of each client.
        seed: Seed of the cell.
        images: The training images of the data set.
    """
    case = CASES[name]
    warps = augmentation_of(params, case)
    settings = {
        **synthesis_utility.training(params, case.dataset, warps),
        "generator": settings_of(params, case).model_dump(),
    }
    key = {"case": name, "epsilon": epsilon}
    runs = []
    for row in common.kept(NAME):
        if common.has(row, {**key, "settings": settings}):
            runs = row["runs"]
    if any(run["seed"] == seed for run in runs):
        return
    accuracy = score(params, case, epsilon, seed, images)
    print(f"{name}, epsilon {epsilon:g}, seed {seed}: {accuracy:.4f}", flush=True)
    runs = sorted([*runs, {"seed": seed, "accuracy": accuracy}], key=lambda run: run["seed"])
    accuracies = [run["accuracy"] for run in runs]
    row = {
        **key,
        "dataset": case.dataset,
        "records": case.records,
        "clients": case.clients,
        "accuracy": float(np.mean(accuracies)),
        "spread": float(np.std(accuracies)),
        "seeds": len(runs),
        "settings": settings,
        "runs": runs,
    }
    # the file is read again, for another process may have written meanwhile
    rows = [*common.without(common.kept(NAME), key), row]
    rows.sort(key=lambda line: (list(CASES).index(line["case"]), line["epsilon"]))
    common.keep(NAME, rows)


def main() -> None:
    """Measures the cells that are not stored yet, and prints all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, required=True, help="folder of the raw files")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    given = parser.parse_args()
    params = config.load()
    for seed in given.seeds:
        for name in given.cases:
            # the test part is not used
            images, _ = common.read(params, CASES[name].dataset, given.images)
            for epsilon in given.epsilons:
                add(params, name, epsilon, seed, images)
    common.show(common.kept(NAME), hidden=HIDDEN)


if __name__ == "__main__":
    main()
