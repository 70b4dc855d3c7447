"""Draws meta-learning tasks that look like a client with few labels.

A task has class shares of its own, from a symmetric Dirichlet distribution. Its few support images
and its query images are drawn by these shares.
"""

import math

import numpy as np
import torch

from pipelines.config.training import FewLabels
from pipelines.federation.core.local_sgd import Local

# so that a client's images have some chance, whatever classes they are of
LEAST_SHARE = 1e-6


def class_shares(classes: int, concentration: float, stream: torch.Generator) -> torch.Tensor:
    """Returns class shares from a symmetric Dirichlet distribution, float32 [classes], none 0.

    Args:
        classes: How many classes there are.
        concentration: Of each class; smaller is more skew.
        stream: The random numbers.

    >>> class_shares(4, 0.5, torch.Generator().manual_seed(0)).sum().round(decimals=4)
    tensor(1.)
    """
    seed = torch.randint(2**31, (1,), generator=stream).item()
    shares = np.random.default_rng(seed).dirichlet(np.full(classes, concentration))
    return torch.from_numpy(np.maximum(shares, LEAST_SHARE)).float()


def support_size(settings: FewLabels, stream: torch.Generator) -> int:
    """Returns how many support images a task has, drawn evenly on a logarithmic scale.

    Args:
        settings: The least and the most.
        stream: The random numbers.
    """
    place = torch.rand(1, generator=stream).item()
    return round(settings.least * math.exp(place * math.log(settings.most / settings.least)))


def by_shares(
    local: Local, shares: torch.Tensor, count: int, stream: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draws images by the shares of their classes, with replacement.

    Args:
        local: The images; a class that has none is left out.
        shares: Of each class, [K].
        count: How many images to draw.
        stream: The random numbers.

    Returns:
        Warped images, float32 [count, C, H, W], and their labels, int64 [count].
    """
    labels = local.labels.cpu()
    images_of_class = torch.bincount(labels, minlength=len(shares))
    chances = shares[labels] / images_of_class[labels]
    rows = torch.multinomial(chances, count, replacement=True, generator=stream)
    return local.batch(rows.to(local.labels.device), stream)
