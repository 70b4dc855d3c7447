"""Trains one client's own model of the one that it was handed, by a recipe. All of it is private.

* `plain` learns from the client's records until its validation loss stops falling.
* `alone` learns from them for the steps of a schedule.
* `replay` learns from them and from released images, with the client's class shares in the loss.
"""

from collections.abc import Callable

from torch import nn

from pipelines import seeds
from pipelines.config.training import FineTune, Replay
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard
from pipelines.federation.home.personal import Personal, balanced, plain
from pipelines.training import classifier, replay
from pipelines.training.pool import Pool
from pipelines.training.tensors import logits, tensors

Build = Callable[[], nn.Module]


def fine_tuned(
    model: nn.Module,
    shard: Shard,
    settings: FineTune,
    *,
    seed: int,
    build: Build,
    pool: Pool | None,
    alone: nn.Module | None = None,
) -> tuple[Personal, dict[str, int]]:
    """Fine-tunes one model in place, by the recipe of the settings.

    Args:
        model: the network, at the weights that the client was handed.
        shard: the client's private records. `plain` stops early on the validation part.
        settings: the recipe, and what it needs.
        seed: of the batches.
        build: makes a fresh network, for a client that trains one alone beside.
        pool: all released images, or None.
        alone: the model that the client trained alone. With `replay` it is the second of a mean,
            and with `alone` the result. None: it is trained here.

    Returns:
        The client's own model, and {"epochs"} or {"steps"} that were taken.
    """
    classes = outputs(model, shard.train)
    if settings.recipe == "alone":
        steps = replay.schedule_of(settings.replay, len(shard.train)).steps
        if not alone:
            replay.fit_alone(model, shard.train, settings.replay, seed)
        return plain(alone or model, classes), {"steps": steps}
    if settings.recipe == "replay":
        personal, steps = replayed(
            model, shard.train, settings.replay, seed=seed, build=build, pool=pool, alone=alone
        )
        return personal, {"steps": steps}
    epochs = classifier.fit(
        model,
        shard.train,
        epochs=settings.epochs,
        batch=settings.batch,
        learning_rate=settings.learning_rate,
        seed=seed,
        validation=shard.validation,
        patience=settings.patience,
    )
    return plain(model, classes), {"epochs": epochs}


def replayed(
    model: nn.Module,
    records: Images,
    settings: Replay,
    *,
    seed: int,
    build: Build,
    pool: Pool | None,
    alone: nn.Module | None = None,
) -> tuple[Personal, int]:
    """Trains one model in place by the recipe `replay`, and beside it one alone where it asks for that.

    Args:
        model: the network, at the weights that the client was handed.
        records: the client's labelled records.
        settings: of the recipe.
        seed: of the batches.
        build: makes a fresh network.
        pool: all released images, or None.
        alone: the model that the client trained alone; None: it is trained here, where the
            settings ask for it.

    Returns:
        The client's own model, and the steps that it took.
    """
    prior = replay.log_prior(records.labels, outputs(model, records))
    schedule = replay.schedule_of(settings, len(records))
    if pool and schedule.steps and schedule.kept < 1:
        replay.move_towards(model, build(), schedule.kept)
    steps = replay.fit(model, records, pool, prior=prior, settings=settings, seed=seed)
    if not schedule.mean_with_local:
        return balanced(model, prior), steps
    if not alone:
        alone = build()
        replay.fit_alone(alone, records, settings, seeds.derive(seed, "alone"))
    return balanced(model, prior, alone), steps


def outputs(model: nn.Module, data: Images) -> int:
    """Returns the number of a network's outputs.

    Args:
        model: the network.
        data: images of its shape; the first is passed through it.
    """
    image, _ = tensors(data[:1], next(model.parameters()).device)
    return logits(model, image).shape[1]
