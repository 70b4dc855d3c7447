"""Finds how many noisy steps a private head takes, and their rate, on training images alone.

    python -m benchmarks.head_schedules --datasets cifar10 --images raw --network encoder
    python -m benchmarks.head_schedules --datasets mnist fashion_mnist --images ../shared/datasets
    python -m benchmarks.head_schedules --datasets mnist --copies        # warped copies alone

The tables `heads` in settings/dp.yaml rest on these rows. A client has so many training images and
a budget, and the accuracy is that on other training images, so that settings may be chosen here. The
noise is seeded, so nothing here is a release. Rows are single runs unless more seeds are given.

`features` names a change to them. With `norm 1` their norm is half of what an encoder's have. With
`centred` their mean is subtracted, which was released with noise for a share of mu squared. With
`warped S` a record has COPIES - 1 warped copies, S times as strong as the profile's warps of
synthetic images. Stored rows are not measured again.
"""

import argparse
import math
from pathlib import Path

import numpy as np

from benchmarks.common import has, keep, kept, read, show, without
from benchmarks.dp_head import NAME as HEAD
from benchmarks.dp_head import on_network
from models.encoders import NORM
from models.fixed_features import BIAS
from pipelines import config, seeds
from pipelines.config.data import ON_FIXED_FEATURES, Augmentation
from pipelines.config.generators import DpHead, DpMoments
from pipelines.config.heads import HeadSchedule, HeadWarps
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.lattice_gradients import inputs_of
from pipelines.privacy.noise import SeededForTests
from pipelines.synthesis import dp_head, release
from pipelines.training import fixed_features, linear_head

NAME = "head_schedules"
SHIPPED = "shipped"
NORM_1 = "norm 1"
CENTRED = "centred"
FEATURES = (SHIPPED, NORM_1, CENTRED)
# {change: the strength of the copies' warps}, where the profile warps synthetic images
WARPED = {"warped 0.4": 0.4, "warped 0.7": 0.7, "warped 1": 1.0}
COPIES = 4
# of mu squared, for the mean that is subtracted
CENTRE_SHARE = 0.03
VALIDATION = 3_000
# {network: (records of a client, its epsilon)}
CLIENTS = {
    "encoder": (
        (1_000, 1.0),
        (3_000, 1.0),
        (3_000, 3.0),
        (10_000, 1.0),
        (10_000, 3.0),
        (10_000, 10.0),
    ),
    "scatter": ((1_000, 1.0), (3_000, 1.0), (12_000, 1.0), (12_000, 3.0), (12_000, 10.0)),
}
# {network: (steps, rate)}
GRID = {
    "encoder": ((20, 2.0), (20, 4.0), (50, 4.0), (50, 8.0), (100, 8.0)),
    "scatter": ((20, 4.0), (20, 8.0), (50, 8.0), (100, 8.0), (100, 20.0), (100, 40.0)),
}
# of features of half the norm
GRID_OF_NORM_1 = ((50, 4.0), (50, 8.0), (100, 8.0), (100, 16.0))
# the client whose features are changed
CHANGED = 10_000
# those whose records have copies, with the schedule that they would take: {(records, epsilon): it}
COPIED = {(12_000, 1.0): (100, 8.0), (12_000, 10.0): (100, 40.0)}
HIDDEN = ("settings",)


def wanted(network: str) -> list[dict]:
    """Returns the cells of a network, but for data set and seed."""
    keys = []
    for records, epsilon in CLIENTS[network]:
        client = {"network": network, "records": records, "epsilon": epsilon}
        for features in FEATURES if (network, records) == ("encoder", CHANGED) else (SHIPPED,):
            for steps, rate in GRID_OF_NORM_1 if features == NORM_1 else GRID[network]:
                keys.append({**client, "features": features, "steps": steps, "rate": rate})
    return keys


def copied() -> list[dict]:
    """Returns the cells of a data set whose records have warped copies, but for set and seed."""
    keys = []
    for (records, epsilon), (steps, rate) in COPIED.items():
        client = {"network": "scatter", "records": records, "epsilon": epsilon}
        for features in WARPED:
            keys.append({**client, "features": features, "steps": steps, "rate": rate})
    return keys


def settings_of(params: config.Params, key: dict) -> DpHead:
    """Returns the shipped settings of a head with the steps and the rate of a cell."""
    schedule = HeadSchedule(from_signal=0.0, steps=key["steps"], learning_rate=key["rate"])
    shipped = params.generator(key["dataset"], HEAD)
    return shipped.model_copy(update={"head_share": 1.0, "schedules": [schedule]})


def accuracy(params: config.Params, key: dict, train: Images) -> float:
    """Returns the accuracy of a head on training images that its client does not hold.

    Args:
        params: The parameters, with the heads on the network of the cell.
        key: The cell.
        train: The training images of the data set.
    """
    profile = params.profiles[key["dataset"]]
    order = np.random.default_rng(seeds.derive(key["seed"], NAME)).permutation(len(train))
    # one draw for all cells, so that features are computed once
    most = max(records for records, _ in CLIENTS[key["network"]])
    fixed = fixed_features.of(profile, key["network"])
    features = fixed_features.features(
        train[order[: most + VALIDATION]], fixed, linear_head.FEATURES
    )
    labels = train.labels[order]
    count = key["records"]
    noise = SeededForTests(seeds.derive(key["seed"], NAME, *map(str, key.values())))
    budget = Budget(key["epsilon"], params.privacy.delta)
    if key["features"] == NORM_1:
        features = features / NORM
    if key["features"] == CENTRED:
        features = features - noisy_mean(features[:count], budget, noise)
        budget = Budget(budget.epsilon, budget.delta, share=1 - CENTRE_SHARE)
    inputs = np.pad(features, ((0, 0), (0, 1)), constant_values=BIAS)
    plan = dp_head.plan(settings_of(params, key), budget, release.public_space(profile))
    records = inputs_of(inputs[:count], labels[:count])
    if key["features"] in WARPED:
        warps = warps_of(profile.augmentation, WARPED[key["features"]])
        records = linear_head.lattice_inputs(train[order[:count]], fixed, warps)
    head = dp_head.noisy_steps(records, plan, count, noise)
    held_out = slice(most, most + VALIDATION)
    return float(np.mean((inputs[held_out] @ head).argmax(1) == labels[held_out]))


def warps_of(augmentation: Augmentation, strength: float) -> HeadWarps:
    """Returns warps of copies, so many times as strong as those of synthetic images."""
    scaled = {}
    for name, value in augmentation.model_dump(exclude={"noise"}).items():
        scaled[name] = value * strength
    return HeadWarps(copies=COPIES, **scaled)


def noisy_mean(features: np.ndarray, budget: Budget, noise: SeededForTests) -> np.ndarray:
    """Returns the mean of features of norm NORM, with the noise of CENTRE_SHARE of mu squared."""
    sigma = NORM / (budget.mu * math.sqrt(CENTRE_SHARE))
    total = features.sum(0, dtype=np.float64) + sigma * noise.normal(features.shape[1:])
    return (total / len(features)).astype(np.float32)


def _place(row: dict) -> tuple:
    names = ("dataset", "network", "records", "epsilon", "features", "steps", "rate", "seed")
    return tuple(row[name] for name in names)


def main() -> None:
    """Measures the cells that are not stored yet, and prints all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, default=Path("../shared/datasets"))
    parser.add_argument("--datasets", nargs="+", required=True)
    parser.add_argument("--network", default="scatter", choices=ON_FIXED_FEATURES)
    parser.add_argument("--copies", action="store_true", help="the cells with copies alone")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    arguments = parser.parse_args()
    loaded = config.load()
    for dataset in arguments.datasets:
        train, _ = read(loaded, dataset, arguments.images)
        params = on_network(loaded, dataset, arguments.network, warped=False)
        for seed in arguments.seeds:
            cells = wanted(arguments.network)
            # warps are the profile's, where it has some beside noise
            warps = params.profiles[dataset].augmentation
            if arguments.network == "scatter" and warps and warps.rotation:
                cells = copied() + ([] if arguments.copies else cells)
            for cell in cells:
                key = {"dataset": dataset, **cell, "seed": seed}
                # a head alone has no images, and nothing of theirs shapes it
                others = {"schedules", *DpMoments.model_fields}
                shipped = settings_of(params, key).model_dump(exclude=others)
                line = {**key, "settings": shipped}
                if any(has(row, line) for row in kept(NAME)):
                    continue
                rows = [
                    *without(kept(NAME), key),
                    {**line, "accuracy": accuracy(params, key, train)},
                ]
                keep(NAME, sorted(rows, key=_place))
    show(kept(NAME), hidden=HIDDEN)


if __name__ == "__main__":
    main()
