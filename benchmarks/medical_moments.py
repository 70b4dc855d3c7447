"""Chooses the settings of `dp_moments` for two medical data sets on their training images alone.

    python -m benchmarks.medical_moments --images raw     # pneumonia.npz and breast.npz lie there

They are PneumoniaMNIST and BreastMNIST. The official test part is never used. A fifth of the
records is a held-out fold, and a client is an IID sample of the rest, both drawn anew for each seed.
The client releases its moments within a budget, a classifier learns from the images alone, and the
fold scores it by macro-F1, because three of four images are of one class.

The search looks at real images without privacy. It changes one setting after the other, beginning
from START. It goes on with the value of the best mean over the seeds if that gains more than SURE
standard errors, and else with the value before. At the small budget it begins from the profile and changes only what
`low_epsilon` may replace.
"""

import argparse
import math
from pathlib import Path

import numpy as np

from benchmarks import common
from pipelines import config, seeds
from pipelines.config.generators import DpMoments
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import dp_moments, release
from pipelines.training import classifier

NAME = "medical_moments"
# {data set: training records of a client}: of five clients, and of three
RECORDS = {"pneumonia": 800, "breast": 160}
HELD_OUT = 0.2
START = {
    "centre": 0.5,
    "cutoff": 8,
    "clip": 5.0,
    "count_weight": 0.5,
    "residual_clip": 3.0,
    "first_share": 0.3,
    "inflation": 1.0,
    "contrast": 1.0,
}
# of the released images; few, so that a score takes seconds
IMAGES = 1000
RECIPE = {"epochs": 6, "batch": 64, "learning_rate": 2e-3, "one_cycle": True}
# smaller differences may be the noise of folds, clients and releases
SURE = 2.0
LARGE = 10.0
SMALL = 1.0
# {epsilon: {setting: the values that are tried}}
SEARCH = {
    LARGE: {
        "cutoff": (6, 8, 10, 12),
        "clip": (3.0, 5.0, 8.0),
        "residual_clip": (2.0, 3.0, 4.5),
        "centre": (0.3, 0.4, 0.5, 0.6),
        "contrast": (1.0, 1.25, 1.5),
        "first_share": (0.15, 0.3, 0.6),
    },
    SMALL: {
        "residual_clip": (1.5, 2.0, 3.0),
        "first_share": (0.3, 0.6, 0.8),
        "inflation": (1.0, 2.0),
    },
}


def score(
    params: config.Params,
    dataset: str,
    settings: DpMoments,
    epsilon: float,
    seed: int,
    records: Images,
) -> float:
    """Returns the macro-F1 on a fold of a classifier that saw a client's released images alone.

    Args:
        params: The parameters of params.yaml.
        dataset: The data set's name.
        settings: The settings of `dp_moments`.
        epsilon: The client's budget.
        seed: Seed of the fold, the client, the images and the classifier.
        records: The records of the data set, without its test part.
    """
    profile = params.profiles[dataset]
    rng = np.random.default_rng(seeds.derive(seed, NAME, dataset))
    fold, rest = common.split(records, HELD_OUT, rng)
    client, _ = common.split(rest, RECORDS[dataset] / len(rest), rng)
    space = release.public_space(profile)
    plan = dp_moments.plan(settings, Budget(epsilon, params.privacy.delta), space)
    state = dp_moments.fit(client, plan, OsEntropy(), seed)
    images = dp_moments.sample(state, IMAGES, seeds.derive(seed, "sample"))
    model = classifier.new(profile, seed)
    classifier.fit(model, images, seed=seed, augmentation=profile.augmentation, **RECIPE)
    return scores(model, fold)["macro_f1"]


def search(
    params: config.Params, dataset: str, epsilon: float, count: int, records: Images
) -> list[dict]:
    """Returns a row for each value that was tried; `chosen` marks the best one of each setting.

    Args:
        params: The parameters of params.yaml.
        dataset: The data set's name.
        epsilon: A key of SEARCH.
        count: The number of seeds.
        records: The records of the data set, without its test part.
    """
    settings = params.generator(dataset, "dp_moments").model_copy(update={"low_epsilon": None})
    if epsilon == LARGE:
        settings = settings.model_copy(update=START)
    rows = []
    for knob, values in SEARCH[epsilon].items():
        tried = []
        for value in sorted({*values, getattr(settings, knob)}):
            candidate = settings.model_copy(update={knob: value})
            results = []
            for seed in range(count):
                results.append(score(params, dataset, candidate, epsilon, seed, records))
            row = {"dataset": dataset, "epsilon": epsilon, "setting": knob, "value": value}
            row |= {"macro_f1": float(np.mean(results)), "deviation": float(np.std(results))}
            row["seeds"] = count
            print(row, flush=True)
            tried.append(row)
        chosen = _chosen(tried, getattr(settings, knob))
        for row in tried:
            rows.append({**row, "chosen": row is chosen})
        settings = settings.model_copy(update={knob: chosen["value"]})
    return rows


def _chosen(tried: list[dict], before: float) -> dict:
    """Returns the row of the best value, or of the value before if the best gains too little."""
    best = max(tried, key=lambda row: row["macro_f1"])
    current = next(row for row in tried if row["value"] == before)
    error = math.hypot(best["deviation"], current["deviation"]) / math.sqrt(best["seeds"])
    return best if best["macro_f1"] - current["macro_f1"] > SURE * error else current


def main() -> None:
    """Searches for each data set and budget, and stores every value that was tried."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=Path, required=True, help="folder of the raw files")
    parser.add_argument("--datasets", nargs="+", choices=list(RECORDS), default=list(RECORDS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(SEARCH))
    parser.add_argument("--seeds", type=int, default=6)
    given = parser.parse_args()
    params = config.load()
    for dataset in given.datasets:
        # the test part is not used
        records, _ = common.read(params, dataset, given.images)
        for epsilon in given.epsilons:
            stored = common.without(common.kept(NAME), {"dataset": dataset, "epsilon": epsilon})
            rows = search(params, dataset, epsilon, given.seeds, records)
            common.keep(NAME, [*stored, *rows])


if __name__ == "__main__":
    main()
