"""Computes per-record gradients, scaled and summed: what DP-SGD releases with noise.

Noisy full-batch steps release the same. Sensitivity: the largest norm that the scaling leaves a
record, when one record is added or removed. Noise and accounting are the caller's.

>>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
>>> images = torch.ones(3, 1, 2, 2)
>>> total = clipped_sum(model, images, torch.tensor([0, 1, 0]), clipping_norm=0.5)
>>> squares = sum(float(layer.square().sum()) for layer in total.values())
>>> squares**0.5 <= 3 * 0.5
True
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

from pipelines.privacy import layerwise
from pipelines.privacy.record_gradients import LARGEST, Formed, Sums

# records whose gradients are held at once: more leave a CPU's cache, and take longer
CHUNK = 80
# numbers at most in the gradients that are held: 1 GiB
HELD = 2**28
# scales [n] from norms [n], both float64
Rule = Callable[[torch.Tensor], torch.Tensor]


class Lot(NamedTuple):
    """Holds one client's records of a step.

    Attributes:
        images: [n, C, H, W].
        labels: int64 [n].
        rule: How the gradients are scaled.
    """

    images: torch.Tensor
    labels: torch.Tensor
    rule: Rule


class Scaled(NamedTuple):
    """Holds the result for one lot.

    Attributes:
        total: The sum over records of gradient times scale.
        norms: float64 [n], of the gradients as they were. They are of private records: they may
            leave in a noisy sum that is accounted, not otherwise.
    """

    total: Sums
    norms: torch.Tensor


class Part(NamedTuple):
    """Holds a part of a pass.

    Attributes:
        lot: The number of the lot whose records these are.
        images, labels: The records.
        rows: Where they lie in the pass.
    """

    lot: int
    images: torch.Tensor
    labels: torch.Tensor
    rows: slice


def clipped_sum(
    model: nn.Module, images: torch.Tensor, labels: torch.Tensor, clipping_norm: float
) -> Sums:
    """Returns the sum over records of gradients scaled to L2 norm <= clipping_norm.

    The norm is over all parameters together. Adding or removing one record moves the sum by at most
    clipping_norm (and float rounding). An empty lot gives zeros.

    Args:
        model: The classifier.
        images: [n, C, H, W].
        labels: int64 [n].
        clipping_norm: The largest norm of a record's gradient.
    """
    return scaled_sum(model, Lot(images, labels, clipped(clipping_norm))).total


def clipped(clipping_norm: float) -> Rule:
    """Returns the rule by which norms above clipping_norm become clipping_norm, the sensitivity.

    >>> clipped(2.0)(torch.tensor([1.0, 4.0])).tolist()
    [1.0, 0.5]
    """

    def scale(norms: torch.Tensor) -> torch.Tensor:
        return (clipping_norm / norms.clamp(min=1e-12)).clamp(max=1.0)

    return scale


def scaled_sum(model: nn.Module, lot: Lot) -> Scaled:
    """Returns the scaled sum of one lot, as `scaled_sums`."""
    (scaled,) = scaled_sums(model, [lot])
    return scaled


def scaled_sums(model: nn.Module, lots: list[Lot]) -> list[Scaled]:
    """Returns the scaled sum of each lot, all at the same weights.

    Small lots share passes through the model, and a lot's sum is over its own records alone. A
    hostile server's huge weights must not let one record turn the sum into NaN, nor pass with a
    scale that a float cannot hold: where its gradient is not finite, or above LARGEST, it counts as
    zero.
    """
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    totals = []
    norms = []
    for _ in lots:
        totals.append({name: torch.zeros_like(tensor) for name, tensor in weights.items()})
        norms.append([torch.zeros(0).double()])
    if layerwise.serves(model):
        gradients_of = layerwise.parts
        most = CHUNK
    else:
        gradients_of = _by_vmap
        most = _held(weights)
    for parts in _passes(lots, most):
        images = torch.cat([part.images for part in parts])
        labels = torch.cat([part.labels for part in parts])
        # a caller's autocast is off: norms of eight bits bound no sum
        with torch.autocast(images.device.type, enabled=False):
            gradients = gradients_of(model, weights, images, labels)
            pass_norms = sum(layer.squares() for layer in gradients).sqrt()
            for part in parts:
                part_norms = pass_norms[part.rows]
                norms[part.lot].append(part_norms.cpu())
                # nan is not
                keep = part_norms <= LARGEST
                scale = torch.where(keep, lots[part.lot].rule(part_norms), 0.0).to(images.dtype)
                for layer in gradients:
                    _add(totals[part.lot], layer.of(part.rows).sum(keep, scale))
    return [Scaled(total, torch.cat(parts)) for total, parts in zip(totals, norms)]


def _add(total: Sums, addends: Sums) -> None:
    for name, addend in addends.items():
        total[name] += addend


def _held(weights: Sums) -> int:
    """Returns how many records may have their whole gradients in memory together."""
    return max(1, min(CHUNK, HELD // sum(map(torch.numel, weights.values()))))


def _passes(lots: list[Lot], most: int) -> Iterator[list[Part]]:
    """Yields what goes through the model together, of at most so many records.

    Lots are cut into as few equal parts as that allows, and the parts share passes in their order.
    An empty lot is in no pass.
    """
    passed = []
    size = 0
    for number, lot in enumerate(lots):
        for images, labels in _cut(lot, most):
            if size + len(labels) > most and passed:
                yield passed
                passed = []
                size = 0
            passed.append(Part(number, images, labels, slice(size, size + len(labels))))
            size += len(labels)
    if passed:
        yield passed


def _cut(lot: Lot, most: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Cuts a lot into as few equal parts as `most` records each allow."""
    parts = -(-len(lot.labels) // most)
    if not parts:
        return []
    return list(zip(lot.images.tensor_split(parts), lot.labels.tensor_split(parts)))


def _by_vmap(
    model: nn.Module, weights: Sums, images: torch.Tensor, labels: torch.Tensor
) -> list[Formed]:
    """Returns the gradients of any model that treats records alone.

    torch.func says so where a model does not.
    """

    def loss(parameters, image, label):
        return F.cross_entropy(functional_call(model, parameters, (image[None],)), label[None])

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(weights, images, labels)
    shapes = {name: tensor.shape for name, tensor in weights.items()}
    return [Formed({name: tensor.flatten(1) for name, tensor in gradients.items()}, shapes)]
