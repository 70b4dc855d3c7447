"""A small conditional discriminator, and many of them as one stack of tensors [N, ...]."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, vmap

Stack = dict[str, torch.Tensor]


class MlpTeacher(nn.Module):
    """Image and label in, one logit out: is it real?"""

    def __init__(self, *, shape: tuple[int, int, int], classes: int, hidden: int):
        super().__init__()
        self.classes = classes
        self.hidden = nn.Linear(math.prod(shape) + classes, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """[B, C, H, W] and int64 [B] -> logits [B]."""
        inputs = torch.cat([images.flatten(1), F.one_hot(labels, self.classes).to(images.dtype)], dim=1)
        return self.out(F.leaky_relu(self.hidden(inputs), 0.2)).squeeze(1)


def stack(teacher: nn.Module, count: int, generator: torch.Generator) -> Stack:
    """Independent initial weights for `count` copies of `teacher`: uniform within 1 / sqrt(fan in)."""
    stacked = {}
    for name, tensor in teacher.named_parameters():
        layer = teacher.get_parameter(name.rsplit(".", 1)[0] + ".weight")
        bound = 1 / math.sqrt(layer[0].numel())
        draws = torch.rand(count, *tensor.shape, generator=generator) * 2 - 1
        stacked[name] = (draws * bound).requires_grad_()
    return stacked


def logits(teacher: nn.Module, stacked: Stack, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """[N, B]: each teacher on its own images [N, B, C, H, W] and labels [N, B]."""
    return vmap(lambda weights, x, y: functional_call(teacher, weights, (x, y)))(stacked, images, labels)
