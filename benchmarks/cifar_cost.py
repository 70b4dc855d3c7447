"""What CIFAR-10 costs at its profile's settings: measured on images made of noise, then multiplied.

    python -m benchmarks.cifar_cost          # some minutes on one core

Cost does not depend on what the images show, so that noise of CIFAR's shape will do. CPU-seconds of one thread for
small pieces of each stage, times how often the stage does such a piece for one generator and five clients of 10,000
records. `hours` are core-hours: arithmetic, not a run. A fine-tuning is counted with all its epochs; patience ends most
of them sooner.
"""

import math
from functools import partial

import numpy as np
import torch

from benchmarks.common import publish
from benchmarks.federated_round import CLIENTS, Round, seconds
from models import classifiers
from pipelines import config
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.federation.core.task import Task
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import base, release
from pipelines.training import classifier

RECORDS, TEST = 10_000, 10_000  # of a client; of the global test set
FEW = 128  # images of a measured piece
EPSILON = 10.0


def noise(count: int) -> Images:
    rng = np.random.default_rng(count)
    return Images(
        rng.integers(0, 256, (count, 32, 32, 3)).astype(np.uint8),
        rng.integers(0, 10, count),
        np.arange(count),
    )


def federated(params: config.Params, algorithm: str, few: int) -> float:
    """CPU-seconds of one round over clients with `few` images each."""
    build = partial(classifiers.build, "resnet", shape=(32, 32, 3), classes=10, seed=0)
    data = {f"c{number}": noise(few) for number in range(CLIENTS)}
    block = params.training("cifar10", "meta" if algorithm == "pppfl" else algorithm)
    return seconds(
        Round(algorithm, block, Task(data, build, None, dict.fromkeys(data, EPSILON), seed=0))
    )


def generated(params: config.Params, name: str, records: int, images: int, **changes) -> float:
    """CPU-seconds of one client's release and images."""
    module, profile = base.load(name), params.profiles["cifar10"]
    settings = params.generator("cifar10", name).model_copy(update=changes)
    plan = module.plan(
        settings, Budget(EPSILON, params.privacy.delta), release.public_space(profile)
    )
    return seconds(
        lambda: module.sample(module.fit(noise(records), plan, OsEntropy(), 0), images, 0)
    )


def generation(params: config.Params, records: int) -> list[tuple]:
    """(stage, unit, CPU-seconds of a unit, units)."""
    images, steps = params.profiles["cifar10"].images, params.generator("cifar10", "datalens").steps
    moments = generated(params, "dp_moments", records, images)
    first, third = (generated(params, "datalens", records, images, steps=count) for count in (1, 3))
    return [
        ("train_generator, dp_moments", "client", moments, CLIENTS),
        ("train_generator, datalens: warm-up and first step", "client", first, CLIENTS),
        (
            "train_generator, datalens: the others",
            "step",
            (third - first) / 2,
            CLIENTS * (steps - 1),
        ),
    ]


def training(params: config.Params, records: int) -> list[tuple]:
    meta, fedavg, home = (
        params.training("cifar10", name) for name in ("meta", "fedavg", "fine_tune")
    )
    epochs = fedavg.rounds * fedavg.local_epochs
    model = classifiers.build("resnet", shape=(32, 32, 3), classes=10, seed=0)
    once = {"epochs": 1, "batch": home.batch, "learning_rate": home.learning_rate, "seed": 0}
    record = seconds(lambda: classifier.fit(model, noise(FEW), **once)) / FEW
    synthetic = CLIENTS * params.profiles["cifar10"].images
    return [
        ("meta_train", "round", federated(params, "pppfl", 4 * meta.batch), meta.rounds),
        (
            "train_baseline, fedavg",
            "image",
            federated(params, "fedavg", FEW) / (CLIENTS * FEW),
            synthetic * epochs,
        ),
        ("fine_tune, at most", "record", record, CLIENTS * records * home.epochs),
        (
            "scoring a model on the test set",
            "image",
            seconds(lambda: scores(model, noise(FEW))) / FEW,
            TEST,
        ),
    ]


def rows(params: config.Params) -> list[dict]:
    parts = params.partition
    records = math.ceil((1 - parts.test_fraction - parts.validation_fraction) * RECORDS)
    return [
        {
            "stage": stage,
            "per": unit,
            "cpu_seconds": cost,
            "times": times,
            "hours": cost * times / 3600,
        }
        for stage, unit, cost, times in (*generation(params, records), *training(params, records))
    ]


def main() -> None:
    torch.set_num_threads(1)
    publish("cifar_cost", rows(config.load()))


if __name__ == "__main__":
    main()
