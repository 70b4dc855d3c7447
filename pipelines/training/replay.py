"""Trains a client's model on its private images, and on released synthetic images in every step.

The loss is (1 - lambda) CE(f(x) + log pi, y) on private images, plus lambda CE(f(x'), y') on a
class-balanced draw of released images. pi is the client's own smoothed class shares. With log pi in
the loss, the weights learn what an image shows and not how frequent its class is at the client, so
that one set of weights has two read-outs: f(x) + log pi on the client's own images, and f(x) on
everybody's. Without released images a proximal term keeps the weights near those they start from.

All of it is private: it is computed from the client's own records, and stays at the client. The
released images are public, so that training on them costs nothing.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from pipelines.config.training import Replay, ReplaySchedule
from pipelines.datasets.labelled_images import Images
from pipelines.training.fixed_features import without_fixed_part
from pipelines.training.pool import Pool
from pipelines.training.progress import Steps
from pipelines.training.tensors import tensors


def log_prior(labels: np.ndarray, classes: int) -> np.ndarray:
    """Returns the logarithm of the client's smoothed class shares, float32 [K].

    A share is (count + 1) / (n + K), for n labels and K classes.

    >>> np.exp(log_prior(np.array([0, 0, 1, 0]), classes=4)).round(3)
    array([0.5  , 0.25 , 0.125, 0.125], dtype=float32)
    """
    counts = np.bincount(labels, minlength=classes)
    return np.log((counts + 1) / (len(labels) + classes)).astype(np.float32)


def schedule_of(settings: Replay, labels: int) -> ReplaySchedule:
    """Returns the schedule of a client with so many labels: the last that begins at or below them.

    Args:
        settings: The schedules, rising by `from_labels`; the first begins at 0.
        labels: How many labelled records the client trains on.
    """
    fitting = [schedule for schedule in settings.schedules if schedule.from_labels <= labels]
    return fitting[-1]


def move_towards(model: nn.Module, fresh: nn.Module, kept: float) -> None:
    """Replaces a part of a model's weights by those of a fresh network, in place.

    A model that was trained long on synthetic images learns private ones less well than one that
    was trained less. From its shrunk and disturbed weights it learns them as well as from random
    ones (Ash and Adams 2020, On Warm-Starting Neural Network Training).

    Args:
        model: The network, at the weights that the client was handed.
        fresh: The same network, at random weights.
        kept: The part of the model's weights that stays.
    """
    with torch.no_grad():
        for parameter, random in zip(model.parameters(), fresh.parameters()):
            parameter.lerp_(random.to(parameter.device), 1 - kept)


def fit_alone(model: nn.Module, records: Images, settings: Replay, seed: int) -> int:
    """Trains a fresh model in place on private records alone, by the same schedule.

    The loss is the cross-entropy as it is, without class shares and without a proximal term. This is
    what a client has without any federation, at equal steps.

    Args:
        model: The network, at random weights.
        records: The client's private images and labels.
        settings: The schedules and the batch.
        seed: The seed of all draws.

    Returns:
        The number of steps taken.
    """
    nothing = np.zeros(1, np.float32)
    free = settings.model_copy(update={"proximal": 0.0})
    return fit(model, records, None, prior=nothing, settings=free, seed=seed)


def fit(
    model: nn.Module,
    records: Images,
    pool: Pool | None,
    *,
    prior: np.ndarray,
    settings: Replay,
    seed: int,
) -> int:
    """Trains a model in place by the schedule of the client's number of labels.

    The last iterate stays: nothing is selected, for a validation part would be more labels.

    Args:
        model: The network, at the weights that the client was handed.
        records: The client's private images and labels.
        pool: All released images; None where a method has none.
        prior: The logarithm of the client's class shares, [K], from `log_prior`.
        settings: The schedules, the batches and the proximal term.
        seed: The seed of all draws.

    Returns:
        The number of steps taken.
    """
    schedule = schedule_of(settings, len(records))
    if not schedule.steps:
        model.eval()
        return 0
    on = next(model.parameters()).device
    images, labels = tensors(records, on)
    trained, inputs = without_fixed_part(model, images)
    offset = torch.as_tensor(prior).to(on)
    anchor = [parameter.detach().clone() for parameter in model.parameters()]
    stream = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=schedule.learning_rate, fused=True)
    share = schedule.synthetic_share if pool else 0.0
    released = pool.batches(schedule.synthetic_batch, schedule.steps, stream) if share else None
    model.train()
    batches = _batches(len(labels), settings.batch, schedule.steps, stream)
    steps = Steps(enumerate(batches), "training at home", schedule.steps, every=20)
    for step, rows in steps:
        if share:
            synthetic, classes = next(released)
            # one pass for both: of small images a pass alone is mostly overhead
            _, entering = without_fixed_part(model, synthetic)
            outputs = trained(torch.cat([inputs[rows], entering]))
            loss = _loss_of_both(outputs, labels[rows], classes, offset, share)
        else:
            loss = F.cross_entropy(trained(inputs[rows]) + offset, labels[rows])
            if settings.proximal:
                loss = loss + settings.proximal / 2 * _squared_distance(model, anchor)
        if schedule.cosine:
            turn = math.pi * step / schedule.steps
            optimiser.param_groups[0]["lr"] = schedule.learning_rate * (1 + math.cos(turn)) / 2
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        steps.tell(loss)
    model.eval()
    return schedule.steps


def _loss_of_both(
    outputs: torch.Tensor,
    labels: torch.Tensor,
    classes: torch.Tensor,
    offset: torch.Tensor,
    share: float,
) -> torch.Tensor:
    """Returns the loss on private images with the class shares, and on released ones without.

    Args:
        outputs: Logits of the private images, then of the released ones, [n + m, K].
        labels: Of the private images, int64 [n].
        classes: Of the released images, int64 [m].
        offset: The logarithm of the client's class shares, [K].
        share: Lambda, the weight of the loss on released images.
    """
    private = F.cross_entropy(outputs[: len(labels)] + offset, labels)
    public = F.cross_entropy(outputs[len(labels) :], classes)
    return (1 - share) * private + share * public


def _squared_distance(model: nn.Module, anchor: list[torch.Tensor]) -> torch.Tensor:
    distances = []
    for parameter, start in zip(model.parameters(), anchor):
        distances.append((parameter - start).square().sum())
    return torch.stack(distances).sum()


def _batches(count: int, size: int, steps: int, stream: torch.Generator) -> Iterator[torch.Tensor]:
    """Yields `steps` batches of min(count, size) rows: all rows in turn, shuffled anew each time."""
    size = min(count, size)
    waiting = torch.empty(0, dtype=torch.int64)
    for _ in range(steps):
        if len(waiting) < size:
            waiting = torch.cat([waiting, torch.randperm(count, generator=stream)])
        yield waiting[:size]
        waiting = waiting[size:]
