"""Estimates what CIFAR-10 costs by ResNet-18, at its profile's settings.

    python -m benchmarks.cifar_cost          # some minutes on one core

The cost does not depend on what images show, so it is measured on noise of CIFAR's shape. A small
piece of each stage is measured in CPU-seconds of one thread. It is multiplied by how often the
stage does such a piece for one generator and five clients of 10,000 records. `hours` are
core-hours: they are computed and no run took them.
"""

import math
from functools import partial

import numpy as np
import torch

from benchmarks.common import publish, with_network
from benchmarks.federated_round import CLIENTS, Round, seconds
from models import classifiers
from pipelines import config
from pipelines.config.training import Pooled, Replay
from pipelines.config.values import Block
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.federation.algorithms import base as algorithms
from pipelines.federation.core.gathered import at_one_place, trained_on_all
from pipelines.federation.core.task import Task
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import base, release
from pipelines.synthesis.datalens.plan import settled
from pipelines.training import replay
from pipelines.training.pool import Pool

SHAPE = (32, 32, 3)
CLASSES = 10
# Number of records of a client, and of the global test set.
RECORDS = 10_000
TEST = 10_000
# Number of images of a measured piece, and of its steps.
FEW = 128
FEW_STEPS = 4
EPSILON = 10.0

# (stage, unit, CPU-seconds of a unit, number of units)
Part = tuple[str, str, float, int]


def noise(count: int) -> Images:
    """Returns as many images of noise with random labels."""
    rng = np.random.default_rng(count)
    return Images(
        rng.integers(0, 256, (count, *SHAPE)).astype(np.uint8),
        rng.integers(0, CLASSES, count),
        np.arange(count),
    )


def task_of(few: int) -> Task:
    """Returns a task of clients that have so many images each."""
    build = partial(classifiers.build, "resnet", shape=SHAPE, classes=CLASSES, seed=0)
    data = {f"c{number}": noise(few) for number in range(CLIENTS)}
    return Task(data, build, None, dict.fromkeys(data, EPSILON), seed=0)


def federated(algorithm: str, settings: Block, few: int) -> float:
    """Returns the CPU-seconds of one round, at one place where the settings say so.

    Args:
        algorithm: Name of the algorithm.
        settings: Those of its run.
        few: Number of images of each client.
    """
    task = task_of(few)
    if algorithms.at_server(algorithms.load(algorithm), settings):
        task = at_one_place(task)
    return seconds(Round(algorithm, settings, task))


def released(settings: Pooled) -> float:
    """Returns the CPU-seconds of a step of training on all released images."""
    few = settings.model_copy(update={"steps": FEW_STEPS})
    return seconds(lambda: trained_on_all(task_of(FEW), few)) / FEW_STEPS


def at_home(settings: Replay, records: int) -> tuple[float, float, int]:
    """Returns the CPU-seconds of a step of the recipe `replay`, of one alone, and how many there are.

    Args:
        settings: Of the recipe.
        records: Number of records of the client.
    """
    schedule = replay.schedule_of(settings, records)
    short = schedule.model_copy(update={"from_labels": 0, "steps": FEW_STEPS})
    few = settings.model_copy(update={"schedules": [short]})
    model = task_of(1).build()
    data = noise(FEW)
    prior = replay.log_prior(data.labels, CLASSES)
    both = seconds(
        lambda: replay.fit(model, data, Pool(data, None), prior=prior, settings=few, seed=0)
    )
    alone = seconds(lambda: replay.fit_alone(model, data, few, seed=0))
    return both / FEW_STEPS, alone / FEW_STEPS, schedule.steps


def generated(params: config.Params, name: str, records: int, images: int, **changes) -> float:
    """Returns the CPU-seconds of one client's release and its images.

    Args:
        params: The parameters of params.yaml.
        name: Name of the generator.
        records: Number of records of the client.
        images: Number of images to sample.
        **changes: Settings of the generator to change.
    """
    module = base.load(name)
    settings = params.generator("cifar10", name).model_copy(update=changes)
    budget = Budget(EPSILON, params.privacy.delta)
    space = release.public_space(params.profiles["cifar10"], records)
    plan = module.plan(settings, budget, space)

    def release_and_sample() -> None:
        state = module.fit(noise(records), plan, OsEntropy(), 0)
        module.sample(state, images, 0)

    return seconds(release_and_sample)


def generation(params: config.Params, records: int) -> list[Part]:
    """Returns the parts of train_generator; records: number of records of a client."""
    images = params.profiles["cifar10"].images
    space = release.public_space(params.profiles["cifar10"], records)
    whole = settled(
        params.generator("cifar10", "datalens"), Budget(EPSILON, params.privacy.delta), space
    )
    steps = whole.steps
    teachers = whole.teachers
    moments = generated(params, "dp_moments", records, images)
    first = generated(params, "datalens", records, images, steps=1, teachers=teachers)
    third = generated(params, "datalens", records, images, steps=3, teachers=teachers)
    step = (third - first) / 2
    return [
        ("train_generator, dp_moments", "client", moments, CLIENTS),
        ("train_generator, datalens: warm-up and first step", "client", first, CLIENTS),
        ("train_generator, datalens: the others", "step", step, CLIENTS * (steps - 1)),
    ]


def training(params: config.Params, records: int) -> list[Part]:
    """Returns the parts of training and scoring; records: number of records of a client."""
    meta = params.training("cifar10", "meta")
    fedavg = params.training("cifar10", "fedavg")
    home = params.training("cifar10", "fine_tune")
    model = task_of(1).build()
    fedavg_image = federated("fedavg", fedavg, FEW) / (CLIENTS * FEW)
    both, alone, steps = at_home(home.replay, records)
    scored_image = seconds(lambda: scores(model, noise(FEW))) / FEW
    synthetic = CLIENTS * params.profiles["cifar10"].images
    fedavg_images = synthetic * fedavg.rounds * fedavg.local_epochs
    return [
        ("meta_train, warm start", "step", released(meta.warm_start), meta.warm_start.steps),
        ("meta_train", "round", federated("pppfl", meta, 4 * meta.batch), meta.rounds),
        ("train_baseline, fedavg", "image", fedavg_image, fedavg_images),
        ("fine_tune, replay", "step", both, CLIENTS * steps),
        ("fine_tune, the model alone beside it", "step", alone, CLIENTS * steps),
        ("scoring a model on the test set", "image", scored_image, TEST),
    ]


def rows(params: config.Params) -> list[dict]:
    """Returns the lines of the table."""
    partition = params.partition
    share = 1 - partition.test_fraction - partition.validation_fraction
    records = math.ceil(share * RECORDS)
    table = []
    for stage, unit, cost, times in (*generation(params, records), *training(params, records)):
        row = {"stage": stage, "per": unit, "cpu_seconds": cost, "times": times}
        row["hours"] = cost * times / 3600
        table.append(row)
    return table


def main() -> None:
    """Measures on one thread, prints and stores the table."""
    torch.set_num_threads(1)
    publish("cifar_cost", rows(with_network(config.load(), "cifar10", "resnet")))


if __name__ == "__main__":
    main()
