"""The pool of all released images, drawn from with all classes alike.

The classes of the clients' sets together are as frequent as at the clients. A model that is to serve
everybody must not learn that, so every class is drawn equally often.
"""

from collections.abc import Iterator, Mapping

import torch
import torch.nn.functional as F
from torch import nn

from pipelines.config.data import Augmentation
from pipelines.config.training import Pooled
from pipelines.datasets.labelled_images import Images, concatenate, first_of_each_class
from pipelines.training.augmentation import warp
from pipelines.training.progress import Steps
from pipelines.training.tensors import tensors

# Batches that are drawn and warped at once: of small images a batch alone is mostly overhead.
AT_ONCE = 16


class Pool:
    """Holds all released images, and draws from them with all classes alike.

    Args:
        data: The released images of all clients.
        augmentation: The data set's public warps, or None.
        device: Where the images lie.
    """

    def __init__(
        self, data: Images, augmentation: Augmentation | None, device: torch.device | str = "cpu"
    ):
        images, labels = tensors(data, device)
        order = torch.argsort(labels, stable=True)
        self.images = images[order]
        self.labels = labels[order]
        self.augmentation = augmentation
        _, counts = torch.unique_consecutive(self.labels.cpu(), return_counts=True)
        self.counts = counts
        self.starts = counts.cumsum(0) - counts

    def draw(self, count: int, stream: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Draws images: a class that is there at random, then one of its images at random.

        Args:
            count: How many images to draw.
            stream: The random numbers.

        Returns:
            Warped images, float32 [count, C, H, W], and their labels, int64 [count].
        """
        classes = torch.randint(len(self.counts), (count,), generator=stream)
        places = torch.rand(count, generator=stream) * self.counts[classes]
        rows = (self.starts[classes] + places.long()).to(self.images.device)
        images = self.images[rows]
        if self.augmentation:
            images = warp(images, self.augmentation, stream)
        return images, self.labels[rows]

    def batches(
        self, count: int, steps: int, stream: torch.Generator
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yields a batch for each step, as `draw` makes them.

        Args:
            count: How many images a batch has.
            steps: How many batches there are.
            stream: The random numbers.
        """
        for first in range(0, steps, AT_ONCE):
            images, labels = self.draw(count * min(AT_ONCE, steps - first), stream)
            yield from zip(images.split(count), labels.split(count))


def released_images(sets: Mapping[str, Images], per_class: int | None = None) -> Images | None:
    """Returns what is handed out of all clients' released sets, or None if there are none.

    Args:
        sets: {client: its exported set}.
        per_class: How many images of a class; None: all.
    """
    if not sets:
        return None
    everything = concatenate([sets[client] for client in sorted(sets)])
    return first_of_each_class(everything, per_class)


def released_pool(
    sets: Mapping[str, Images],
    augmentation: Augmentation | None,
    device: torch.device | str = "cpu",
    per_class: int | None = None,
) -> Pool | None:
    """Returns the pool of all clients' released sets, or None if there are none.

    Args:
        sets: {client: its exported set}.
        augmentation: The data set's public warps, or None.
        device: Where the images lie.
        per_class: How many images of a class; None: all.
    """
    images = released_images(sets, per_class)
    return None if images is None else Pool(images, augmentation, device)


def fit(model: nn.Module, pool: Pool, settings: Pooled, seed: int) -> None:
    """Trains a model in place on the pool. The last iterate stays.

    Args:
        model: The network.
        pool: The released images.
        settings: Steps, batch and the peak of the learning rate.
        seed: Of all draws.
    """
    stream = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, settings.learning_rate, total_steps=settings.steps
    )
    model.train()
    batches = pool.batches(settings.batch, settings.steps, stream)
    steps = Steps(batches, "training on released images", settings.steps, every=20)
    for images, labels in steps:
        loss = F.cross_entropy(model(images), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        schedule.step()
        steps.tell(loss)
    model.eval()
