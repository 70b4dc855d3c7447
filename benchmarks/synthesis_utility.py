"""Measures what a classifier learns from one client's synthetic set alone, on the real test set.

    python -m benchmarks.synthesis_utility --images ../shared/datasets     # hours; measures missing cells
    python -m benchmarks.synthesis_utility --generators dp_moments --datasets mnist --epsilons 1 --sizes 12000

A client is an IID sample of the training images; 60,000 is all of them. The classifier's schedule and
the number of images are constants below. The last iterate is tested once, on the whole test set. Each
seed draws its own client, noise (operating system), images and classifier.

`itself` is the accuracy of the classifier that some generators release beside their images. `real`
trains on the records themselves without privacy and gives the upper bound. `gan` has no privacy
either. At epsilon inf a generator adds no noise, so there is no privacy.

A run takes minutes, and each cell is written when it is done. Cells that are stored under the same
settings are not measured again. `device` of params.yaml says where teachers and classifier run:
with `auto` on a GPU where there is one, and a run names it.
"""

import argparse
import io
import math
import time
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
from torch import nn
from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric

from benchmarks import common
from benchmarks.common import cells, cpu_seconds, keep, kept, show
from models.features import SmallGray
from pipelines import config, seeds
from pipelines.config.data import Augmentation
from pipelines.config.generators import GENERATORS, Datalens
from pipelines.config.values import Block
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation import image_comparison
from pipelines.evaluation.scoring import scores
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import base, release
from pipelines.synthesis.datalens.plan import settled
from pipelines.training import classifier
from pipelines.training.tensors import device

NAME = "synthesis_utility"
# Number of synthetic images, the same for every generator.
IMAGES = 20_000
# These are 1,256 steps of Adam.
RECIPE = {"epochs": 8, "batch": 128, "learning_rate": 2e-3, "one_cycle": True}
HIDDEN = ("settings", "runs")
# These have no privacy at any epsilon. Theirs is stored as none.
NOT_PRIVATE = ("real", "gan")
DATASETS = ("mnist", "fashion_mnist", "cifar10")
# {(generator, data set, records): {epsilon: accuracy}}, set before anything was measured here.
TARGETS = {
    ("dp_moments", "mnist", 12_000): {1: 0.925, 10: 0.955},
    ("dp_moments", "mnist", 60_000): {1: 0.95, 10: 0.955},
    ("dp_moments", "fashion_mnist", 12_000): {1: 0.755, 10: 0.79},
    ("dp_moments", "fashion_mnist", 60_000): {1: 0.78, 10: 0.82},
    ("datalens", "mnist", 60_000): {10: 0.66},
    ("dp_moments", "cifar10", 49_845): {1: 0.35, 10: 0.43},
}
# {generator: {data set: {epsilon: accuracy}}} with all 60,000 records and the papers' own classifiers.
# DataLens' figures are from its paper, the others from DPImageBench (CCS 2025). Its best without
# public images is DP-FETA.
PUBLISHED = {
    "datalens": {"mnist": {1: 0.712, 10: 0.807}, "fashion_mnist": {1: 0.648, 10: 0.706}},
    "dp_merf": {"mnist": {1: 0.803, 10: 0.813}, "fashion_mnist": {1: 0.622, 10: 0.622}},
    "best": {"mnist": {1: 0.956, 10: 0.981}, "fashion_mnist": {1: 0.817, 10: 0.873}},
}


def measure(params: config.Params, key: dict, seed: int, train: Images, test: Images) -> dict:
    """Makes one run of a cell.

    Args:
        params: The parameters of params.yaml.
        key: The cell: "generator", "dataset", "records" and "epsilon".
        seed: Seed of the run.
        train: The training images of the data set.
        test: Its test images.

    Returns:
        {"seed", "accuracy", "itself", "fid", "cpu_seconds" of the generator, "seconds" that pass
        meanwhile, "device"}.
    """
    images = client(key, seed, train)
    on = device(params.device)
    seconds = 0.0
    began = time.monotonic()
    passed = 0.0
    itself = None
    if key["generator"] != "real":
        module = base.load(key["generator"])
        start = cpu_seconds()
        state = fitted(params, key, seed, images)
        images = module.sample(state, IMAGES, seeds.derive(seed, "sample"))
        seconds = cpu_seconds() - start
        passed = time.monotonic() - began
        if hasattr(module, "classifier"):
            itself = scores(module.classifier(state), test)["accuracy"]
    profile = params.profiles[key["dataset"]]
    model = taught(params, key["dataset"], images, seed, profile.augmentation)
    return {
        "seed": seed,
        "accuracy": scores(model, test)["accuracy"],
        "itself": itself,
        "fid": fid(images, test),
        "cpu_seconds": seconds,
        "seconds": passed,
        "device": on.type,
    }


def taught(
    params: config.Params,
    dataset: str,
    images: Images,
    seed: int,
    augmentation: Augmentation | None,
) -> nn.Module:
    """Returns the classifier after its training on a set.

    Args:
        params: The parameters of params.yaml.
        dataset: Name of the data set.
        images: What it learns from.
        seed: Seed of the weights and of the order.
        augmentation: The warps in training.
    """
    model = classifier.new(params.profiles[dataset], seed, device(params.device))
    classifier.fit(model, images, seed=seed, augmentation=augmentation, **RECIPE)
    return model


def training(params: config.Params, dataset: str, augmentation: Augmentation | None) -> dict:
    """Returns all that the training of the classifier depends on but the seed and the images.

    Args:
        params: The parameters of params.yaml.
        dataset: Name of the data set.
        augmentation: The warps in training.
    """
    warps = augmentation.model_dump() if augmentation else None
    network = params.profiles[dataset].classifier
    return {"images": IMAGES, **RECIPE, "classifier": network, "augmentation": warps}


def client(key: dict, seed: int, train: Images) -> Images:
    """Draws the client's records, an IID sample.

    Args:
        key: The cell; its data set and number of records are read.
        seed: Seed of the run.
        train: The training images of the data set.
    """
    rng = np.random.default_rng(seeds.derive(seed, NAME, key["dataset"]))
    return train[np.sort(rng.permutation(len(train))[: key["records"]])]


def fitted(params: config.Params, key: dict, seed: int, shard: Images) -> dict[str, np.ndarray]:
    """Returns the state of a cell's generator, fitted to a shard with noise from the system.

    Args:
        params: The parameters of params.yaml.
        key: The cell.
        seed: Seed of the run.
        shard: The client's records.
    """
    fit = base.load(key["generator"]).fit
    where = base.Where(params.device)
    return fit(
        shard, planned(params, key), OsEntropy(), seeds.derive(seed, key["generator"]), where
    )


def planned(params: config.Params, key: dict) -> base.Plan:
    """Returns the plan of a cell's generator."""
    settings = resolved(params, key)
    # A weak plan is measured, too.
    if hasattr(settings, "weak_plan"):
        settings = settings.model_copy(update={"weak_plan": "warn"})
    return base.load(key["generator"]).plan(settings, *_public(params, key))


def resolved(params: config.Params, key: dict) -> Block:
    """Returns the settings of a cell's generator, with a number of teachers."""
    settings = params.generator(key["dataset"], key["generator"])
    if isinstance(settings, Datalens):
        return settled(settings, *_public(params, key))
    return settings


def _public(params: config.Params, key: dict) -> tuple[Budget, base.Space]:
    """Returns the budget of a cell, and what is public about its images: their number, too."""
    epsilon = math.inf if key["epsilon"] is None else key["epsilon"]
    space = release.public_space(params.profiles[key["dataset"]], key["records"])
    return Budget(epsilon, params.privacy.delta), space


def fid(images: Images, test: Images) -> float:
    """Returns the FID between a set and the test set, with as many images as the test set has.

    The extractor is this project's own (`small_gray`), so no FID of another project compares.
    """
    network = SmallGray("small_gray", ["features"], channels=images.images.shape[-1])
    statistics = []
    for data in (images, test):
        features = image_comparison.features(network, data[: len(test)])["features"]
        statistics.append(fid_features_to_statistics(features))
    return float(fid_statistics_to_metric(*statistics, verbose=False)["frechet_inception_distance"])


def settings_of(params: config.Params, key: dict) -> dict:
    """Returns all that a figure depends on but the seed."""
    augmentation = params.profiles[key["dataset"]].augmentation
    of_classifier = training(params, key["dataset"], augmentation)
    if key["generator"] == "real":
        return of_classifier
    # The rule shapes a run by the number of teachers alone, which stands here.
    settings = resolved(params, key).model_dump(exclude={"teachers_rule"})
    return {**of_classifier, "version": base.load(key["generator"]).VERSION, "generator": settings}


def row(key: dict, settings: dict, runs: list[dict]) -> dict:
    """Returns the table's line for a cell, with means over its runs.

    Args:
        key: The cell.
        settings: What `settings_of` returned.
        runs: One dict per seed, as `measure` returns them.
    """
    generator, dataset, records, epsilon = key.values()
    accuracies = [run["accuracy"] for run in runs]
    itself = [run["itself"] for run in runs if run["itself"] is not None]
    return {
        **key,
        "accuracy": float(np.mean(accuracies)),
        "spread": float(np.std(accuracies)),
        "seeds": len(runs),
        "itself": float(np.mean(itself)) if itself else None,
        "fid": float(np.mean([run["fid"] for run in runs])),
        "cpu_seconds": float(np.mean([run["cpu_seconds"] for run in runs])),
        "target": TARGETS.get((generator, dataset, records), {}).get(epsilon),
        "published": PUBLISHED.get(generator, {}).get(dataset, {}).get(epsilon),
        "best_published": PUBLISHED["best"].get(dataset, {}).get(epsilon),
        "settings": settings,
        "runs": runs,
    }


def best(rows: list[dict]) -> dict[str, str]:
    """Returns the best private classifier of each client.

    It was trained on synthetic images, or a generator released it.
    """
    classifiers: dict[tuple, list[tuple[float, str]]] = {}
    for line in rows:
        if line["epsilon"] is None:
            continue
        cell = (line["dataset"], line["records"], line["epsilon"])
        entries = classifiers.setdefault(cell, [])
        entries.append((line["accuracy"], f"a classifier on the images of {line['generator']}"))
        if line["itself"] is not None:
            entries.append((line["itself"], f"the classifier of {line['generator']}"))
    summary = {}
    for (dataset, records, epsilon), entries in sorted(classifiers.items()):
        value, name = max(entries)
        summary[f"best private, {dataset} {records} epsilon {epsilon:g}"] = f"{value:.4f}, {name}"
    return summary


def main() -> None:
    """Measures the cells that are not stored yet, and prints all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--images", type=Path, default=Path("../shared/datasets"), help="MNIST/raw/*.gz lies in it"
    )
    default = ["real", "dp_moments", "dp_merf", "dp_teacher", "datalens"]
    parser.add_argument("--generators", nargs="+", default=default, choices=["real", *GENERATORS])
    parser.add_argument(
        "--datasets", nargs="+", default=["mnist", "fashion_mnist"], choices=DATASETS
    )
    parser.add_argument("--epsilons", nargs="+", type=_epsilon, default=[1.0, 10.0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[12_000, 60_000])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    params = config.load()
    for seed, dataset, train, test in cells(
        params, arguments.datasets, arguments.seeds, arguments.images
    ):
        for key in _keys(arguments, dataset):
            _add(params, key, seed, train, test)
    rows = kept(NAME)
    show(rows, hidden=HIDDEN, **best(rows))


def _epsilon(text: str) -> float | None:
    """Returns an epsilon as it is stored: None for infinity, which JSON does not have."""
    return None if math.isinf(float(text)) else float(text)


def _keys(arguments: argparse.Namespace, dataset: str) -> list[dict]:
    """Returns the cells of a data set."""
    keys = []
    for generator in arguments.generators:
        epsilons = [None] if generator in NOT_PRIVATE else arguments.epsilons
        for size in arguments.sizes:
            for epsilon in epsilons:
                key = {"generator": generator, "dataset": dataset}
                keys.append({**key, "records": size, "epsilon": epsilon})
    return keys


def _add(params: config.Params, key: dict, seed: int, train: Images, test: Images) -> None:
    """Measures a cell and stores it, unless it is stored. It replaces runs under other settings."""
    settings = settings_of(params, key)
    if any(run["seed"] == seed for run in _runs(key, settings)):
        return
    # The generators' own lines are not shown.
    with redirect_stdout(io.StringIO()):
        run = measure(params, key, seed, train, test)
    print(
        *key.values(),
        f"seed {seed}: {run['accuracy']:.4f} in {run['cpu_seconds']:.0f} CPU-seconds",
        flush=True,
    )
    # The file is read again, for another process may have written meanwhile.
    runs = sorted([*_runs(key, settings), run], key=lambda run: run["seed"])
    rows = [*common.without(kept(NAME), key), row(key, settings, runs)]
    rows.sort(key=lambda line: [str(line[name]) for name in key])
    keep(NAME, rows, **best(rows))


def _runs(key: dict, settings: dict) -> list[dict]:
    """Returns the stored runs of a cell under these settings."""
    for line in kept(NAME):
        if common.has(line, {**key, "settings": settings}):
            return line["runs"]
    return []


if __name__ == "__main__":
    main()
