"""Times a step of the recipe at home against one of plain fine-tuning, in CPU time on one thread.

    python -m benchmarks.recipe_step          # two minutes on one core

Both take turns on the same weights and records, and the least time of each counts. A plain step
takes a batch of the client's records, at most as many as the recipe takes. A step of the recipe
draws, warps and learns from released images, too. Where the schedule says `mean_with_local`, the
time of the model that is trained alone is part of it. The steps of plain fine-tuning are those of
`new_clients`.
"""

import numpy as np
import torch

from benchmarks.common import publish
from benchmarks.federated_round import seconds
from pipelines import config
from pipelines.config.training import FineTune
from pipelines.datasets.labelled_images import Images
from pipelines.federation.home import recipes
from pipelines.training import classifier, replay
from pipelines.training.pool import Pool

NAME = "recipe_step"
DATASETS = ("digits", "mnist")
LABELS = (8, 64, 250, 5000)
# Steps of one measurement, and how often it is repeated.
STEPS = 30
REPEATS = 5


def pictures(params: config.Params, dataset: str, count: int) -> Images:
    """Returns random images with labels in turn.

    Args:
        params: The parameters of params.yaml.
        dataset: Name of the data set, whose shape and classes the images have.
        count: How many images.
    """
    profile = params.profiles[dataset]
    rng = np.random.default_rng(count)
    pixels = rng.integers(0, 256, (count, *profile.shape)).astype(np.uint8)
    return Images(pixels, np.arange(count) % profile.classes, np.arange(count))


def short(settings: FineTune) -> FineTune:
    """Returns the settings with STEPS steps in every schedule that has any."""
    schedules = []
    for schedule in settings.replay.schedules:
        steps = min(schedule.steps, STEPS)
        schedules.append(schedule.model_copy(update={"steps": steps}))
    short_replay = settings.replay.model_copy(update={"schedules": schedules})
    return settings.model_copy(update={"replay": short_replay})


def measured(params: config.Params, dataset: str, labels: int) -> dict:
    """Times both for a client with so many labels.

    Args:
        params: The parameters of params.yaml.
        dataset: Name of the data set.
        labels: How many records the client has.

    Returns:
        The row: CPU-seconds of a step of each, their ratio, and the steps that both take in all.
    """
    profile = params.profiles[dataset]
    shipped = params.training(dataset, "fine_tune")
    settings = short(shipped).replay
    records = pictures(params, dataset, labels)
    pool = Pool(pictures(params, dataset, 5 * profile.images), profile.augmentation)
    batch = min(labels, settings.batch)

    def plain() -> None:
        part = records[:batch]
        classifier.fit(model, part, epochs=STEPS, batch=batch, learning_rate=1e-3, seed=0)

    def recipe() -> None:
        recipes.replayed(
            model,
            records,
            settings,
            seed=0,
            build=lambda: classifier.new(profile, 1),
            pool=pool,
        )

    times = {plain: [], recipe: []}
    for _ in range(REPEATS):
        for work, measurements in times.items():
            model = classifier.new(profile, 0)
            measurements.append(seconds(work) / STEPS)
    plain_seconds = min(times[plain])
    recipe_seconds = min(times[recipe])
    return {
        "dataset": dataset,
        "labels": labels,
        "plain_seconds": plain_seconds,
        "recipe_seconds": recipe_seconds,
        "ratio": recipe_seconds / plain_seconds,
        "plain_steps": params.training(dataset, "new_clients").steps,
        "recipe_steps": replay.schedule_of(shipped.replay, labels).steps,
    }


def main() -> None:
    """Measures all rows, prints and stores the table."""
    torch.set_num_threads(1)
    params = config.load()
    rows = []
    for dataset in DATASETS:
        for labels in LABELS:
            rows.append(measured(params, dataset, labels))
    publish(NAME, rows)


if __name__ == "__main__":
    main()
