"""What a classifier learns from one client's synthetic set alone: accuracy on the whole real test set.

    python -m benchmarks.synthesis_utility --images ../shared/datasets     # hours; measures the cells not kept yet
    python -m benchmarks.synthesis_utility --generators dp_moments --datasets mnist --epsilons 1 --sizes 12000

A client is an IID sample of the training images, 60,000 is all of them. The classifier, its schedule and the number
of images are constants below; the last iterate is tested, once. Each seed draws its own client, noise (operating
system), images and classifier. `itself` is the accuracy of the classifier that a generator releases beside its images,
where it has one. `real` trains on the records themselves: no privacy, the upper line; `gan` has none either, nor what
is asked for at epsilon inf, where a generator adds no noise. A run takes minutes, and each cell is written when it is
done: what is kept under the same settings is not measured again.
"""

import argparse
import io
import math
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric

from benchmarks.common import cells, cpu_seconds, keep, kept, show
from models.features import SmallGray
from pipelines import config, seeds
from pipelines.config.generators import GENERATORS
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation import image_comparison
from pipelines.evaluation.scoring import scores
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import base, release
from pipelines.training import classifier

NAME = "synthesis_utility"
IMAGES = 20_000  # synthetic images, as many for every generator
RECIPE = {
    "epochs": 8,
    "batch": 128,
    "learning_rate": 2e-3,
    "one_cycle": True,
}  # 1,256 steps of Adam
HIDDEN = ("settings", "runs")
NOT_PRIVATE = ("real", "gan")  # whatever the epsilon; theirs stands as none
# set before anything was measured here: {(generator, data set, records): {epsilon: accuracy}}
TARGETS = {
    ("dp_moments", "mnist", 12_000): {1: 0.925, 10: 0.955},
    ("dp_moments", "mnist", 60_000): {1: 0.95, 10: 0.955},
    ("dp_moments", "fashion_mnist", 12_000): {1: 0.755, 10: 0.79},
    ("dp_moments", "fashion_mnist", 60_000): {1: 0.78, 10: 0.82},
    ("datalens", "mnist", 60_000): {10: 0.66},
}
# {generator: {data set: {epsilon: accuracy}}} with all 60,000 records and the papers' own classifiers: DataLens' from
# its paper, the others from DPImageBench (CCS 2025); DP-FETA is its best without public images
PUBLISHED = {
    "datalens": {"mnist": {1: 0.712, 10: 0.807}, "fashion_mnist": {1: 0.648, 10: 0.706}},
    "dp_merf": {"mnist": {1: 0.803, 10: 0.813}, "fashion_mnist": {1: 0.622, 10: 0.622}},
    "best": {"mnist": {1: 0.956, 10: 0.981}, "fashion_mnist": {1: 0.817, 10: 0.873}},
}


def measure(params: config.Params, key: dict, seed: int, train: Images, test: Images) -> dict:
    """One run of one cell."""
    dataset, generator, shard = key["dataset"], key["generator"], client(key, seed, train)
    made, seconds, itself = shard, 0.0, None
    if generator != "real":
        module = base.load(generator)
        start = cpu_seconds()
        state = fitted(params, key, seed, shard)
        made = module.sample(state, IMAGES, seeds.derive(seed, "sample"))
        seconds = cpu_seconds() - start
        if hasattr(module, "classifier"):
            itself = scores(module.classifier(state), test)["accuracy"]
    profile = params.profiles[dataset]
    model = classifier.new(profile, seed)
    classifier.fit(model, made, seed=seed, augmentation=profile.augmentation, **RECIPE)
    accuracy = scores(model, test)["accuracy"]
    return {
        "seed": seed,
        "accuracy": accuracy,
        "itself": itself,
        "fid": fid(made, test),
        "cpu_seconds": seconds,
    }


def client(key: dict, seed: int, train: Images) -> Images:
    """The cell's records: an IID sample."""
    rng = np.random.default_rng(seeds.derive(seed, NAME, key["dataset"]))
    return train[np.sort(rng.permutation(len(train))[: key["records"]])]


def fitted(params: config.Params, key: dict, seed: int, shard: Images) -> dict[str, np.ndarray]:
    module = base.load(key["generator"])
    return module.fit(
        shard, planned(params, key), OsEntropy(), seeds.derive(seed, key["generator"])
    )


def planned(params: config.Params, key: dict) -> base.Plan:
    settings = params.generator(key["dataset"], key["generator"])
    if hasattr(settings, "weak_plan"):  # a weak plan is measured too
        settings = settings.model_copy(update={"weak_plan": "warn"})
    epsilon = math.inf if key["epsilon"] is None else key["epsilon"]
    space = release.public_space(params.profiles[key["dataset"]])
    return base.load(key["generator"]).plan(settings, Budget(epsilon, params.privacy.delta), space)


def fid(made: Images, test: Images) -> float:
    """Of our own extractor (`small_gray`), between as many images as the test set has; no other's FID compares."""
    network = SmallGray("small_gray", ["features"])
    sides = (
        image_comparison.features(network, data[: len(test)])["features"] for data in (made, test)
    )
    statistics = [fid_features_to_statistics(x) for x in sides]
    return float(fid_statistics_to_metric(*statistics, verbose=False)["frechet_inception_distance"])


def settings_of(params: config.Params, key: dict) -> dict:
    """All that a figure depends on but the seed."""
    profile = params.profiles[key["dataset"]]
    warp = profile.augmentation.model_dump() if profile.augmentation else None
    common = {"images": IMAGES, **RECIPE, "classifier": profile.classifier, "augmentation": warp}
    if key["generator"] == "real":
        return common
    settings = params.generator(key["dataset"], key["generator"]).model_dump()
    return {**common, "version": base.load(key["generator"]).VERSION, "generator": settings}


def row(key: dict, settings: dict, runs: list[dict]) -> dict:
    """The table's line for a cell: means over its runs."""
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
        "best_published": PUBLISHED["best"][dataset].get(epsilon),
        "settings": settings,
        "runs": runs,
    }


def best(rows: list[dict]) -> dict[str, str]:
    """The best private classifier of each client: trained on synthetic images, or released itself."""
    found: dict[tuple, tuple[float, str]] = {}
    for line in rows:
        if line["epsilon"] is None:
            continue
        cell = (line["dataset"], line["records"], line["epsilon"])
        for value, how in (
            (line["accuracy"], "a classifier on the images of"),
            (line["itself"], "the classifier of"),
        ):
            if value is not None:
                found[cell] = max(found.get(cell, (0.0, "")), (value, f"{how} {line['generator']}"))
    return {
        f"best private, {dataset} {records} epsilon {epsilon:g}": f"{value:.4f}, {how}"
        for (dataset, records, epsilon), (value, how) in sorted(found.items())
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--images", type=Path, default=Path("../shared/datasets"), help="MNIST/raw/*.gz lies in it"
    )
    default = ["real", "dp_moments", "dp_merf", "dp_teacher", "datalens"]
    parser.add_argument("--generators", nargs="+", default=default, choices=["real", *GENERATORS])
    parser.add_argument(
        "--datasets", nargs="+", default=["mnist", "fashion_mnist"], choices=PUBLISHED["best"]
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
    """As it is kept: JSON has no infinity."""
    return None if math.isinf(float(text)) else float(text)


def _keys(arguments: argparse.Namespace, dataset: str) -> list[dict]:
    return [
        {"generator": generator, "dataset": dataset, "records": size, "epsilon": epsilon}
        for generator in arguments.generators
        for size in arguments.sizes
        for epsilon in ([None] if generator in NOT_PRIVATE else arguments.epsilons)
    ]


def _add(params: config.Params, key: dict, seed: int, train: Images, test: Images) -> None:
    """Measures what is not kept, and keeps it; runs under other settings than today's give way."""
    settings = settings_of(params, key)
    if any(run["seed"] == seed for run in _runs(key, settings)):
        return
    with redirect_stdout(io.StringIO()):  # the generators' own lines
        run = measure(params, key, seed, train, test)
    print(
        *key.values(),
        f"seed {seed}: {run['accuracy']:.4f} in {run['cpu_seconds']:.0f} CPU-seconds",
        flush=True,
    )
    runs = sorted(
        [*_runs(key, settings), run], key=lambda run: run["seed"]
    )  # read anew: others may have written
    others = [
        line for line in kept(NAME) if any(line[name] != value for name, value in key.items())
    ]
    rows = sorted(
        [*others, row(key, settings, runs)], key=lambda line: [str(line[name]) for name in key]
    )
    keep(NAME, rows, **best(rows))


def _runs(key: dict, settings: dict) -> list[dict]:
    for line in kept(NAME):
        if all(line[name] == value for name, value in key.items()) and line["settings"] == settings:
            return line["runs"]
    return []


if __name__ == "__main__":
    main()
