"""Per-record gradients, scaled and summed: what DP-SGD and noisy full-batch steps release with noise.

Sensitivity: the largest norm that the scaling leaves a record, when one record is added or removed. Noise and
accounting are the caller's.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

from pipelines.privacy import layerwise
from pipelines.privacy.record_gradients import LARGEST, Formed, Sums

CHUNK = 80  # records whose gradients are held at once: more leave a CPU's cache, and take longer
HELD = 2**28  # numbers at most in the gradients that are held: 1 GiB
Rule = Callable[[torch.Tensor], torch.Tensor]  # scales [n] from norms, both float64


def clipped_sum(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, clipping_norm: float) -> Sums:
    """Sum over records of gradients scaled to L2 norm <= clipping_norm over all parameters together.

    Adding or removing one record moves the sum by at most clipping_norm (and float rounding). An empty lot gives zeros.
    """
    total, _ = scaled_sum(model, images, labels, clipped(clipping_norm))
    return total


def clipped(clipping_norm: float) -> Rule:
    """Norms above clipping_norm become clipping_norm; sensitivity: clipping_norm."""

    def scale(norms: torch.Tensor) -> torch.Tensor:
        return (clipping_norm / norms.clamp(min=1e-12)).clamp(max=1.0)

    return scale


def scaled_sum(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, rule: Rule) -> tuple[Sums, torch.Tensor]:
    """(sum over records of gradient times scale, norms of the gradients as they were).

    The norms, float64 [n], are of private records: they may leave in a noisy sum that is accounted, not otherwise. A
    hostile server's huge weights must not let one record turn the sum into NaN, nor pass with a scale that a float
    cannot hold: where its gradient is not finite, or above LARGEST, it counts as zero.
    """
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    total, norms = {name: torch.zeros_like(tensor) for name, tensor in weights.items()}, [torch.zeros(0).double()]
    gradients, most = (layerwise.parts, CHUNK) if layerwise.serves(model) else (_by_vmap, _held(weights))
    with torch.autocast(images.device.type, enabled=False):  # a caller's: norms of eight bits bound no sum
        for part in _chunks(images, labels, most):
            found = gradients(model, weights, *part)
            norms.append(sum(layer.squares() for layer in found).sqrt())
            keep = norms[-1] <= LARGEST  # nan is not
            scale = torch.where(keep, rule(norms[-1]), 0.0).to(images.dtype)
            for layer in found:
                for name, addend in layer.sum(keep, scale).items():
                    total[name] += addend
    return total, torch.cat([norm.cpu() for norm in norms])


def _held(weights: Sums) -> int:
    """How many records have their whole gradients in memory together."""
    return max(1, min(CHUNK, HELD // sum(weight.numel() for weight in weights.values())))


def _chunks(images: torch.Tensor, labels: torch.Tensor, most: int):
    """In equal parts of at most so many; none of an empty lot."""
    parts = -(-len(labels) // most)
    return zip(images.tensor_split(parts), labels.tensor_split(parts)) if parts else ()


def _by_vmap(model: nn.Module, weights: Sums, images: torch.Tensor, labels: torch.Tensor) -> list[Formed]:
    """Any model that treats records alone; torch.func says so where one does not."""

    def loss(parameters, image, label):
        return F.cross_entropy(functional_call(model, parameters, (image[None],)), label[None])

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(weights, images, labels)
    shapes = {name: tensor.shape for name, tensor in weights.items()}
    return [Formed({name: g.flatten(1) for name, g in gradients.items()}, shapes)]
