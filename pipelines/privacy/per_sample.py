"""Per-record gradients, scaled and summed: what DP-SGD and noisy full-batch steps release with noise.

Sensitivity: the largest norm that the scaling leaves a record, when one record is added or removed. Noise and
accounting are the caller's.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

from pipelines.privacy import layerwise
from pipelines.privacy.record_gradients import LARGEST, Formed, Sums

CHUNK = 80  # records whose gradients are held at once: more leave a CPU's cache, and take longer
HELD = 2**28  # numbers at most in the gradients that are held: 1 GiB
Rule = Callable[[torch.Tensor], torch.Tensor]  # scales [n] from norms, both float64


class Lot(NamedTuple):
    """One client's records of a step: images [n, C, H, W], labels [n], and how their gradients are scaled."""

    images: torch.Tensor
    labels: torch.Tensor
    rule: Rule


class Scaled(NamedTuple):
    """total: sum over records of gradient times scale. norms: float64 [n], of the gradients as they were; of private
    records: they may leave in a noisy sum that is accounted, not otherwise."""

    total: Sums
    norms: torch.Tensor


class Part(NamedTuple):
    """Of a pass. lot: whose records these are, by number; rows: where they lie in the pass."""

    lot: int
    images: torch.Tensor
    labels: torch.Tensor
    rows: slice


def clipped_sum(
    model: nn.Module, images: torch.Tensor, labels: torch.Tensor, clipping_norm: float
) -> Sums:
    """Sum over records of gradients scaled to L2 norm <= clipping_norm over all parameters together.

    Adding or removing one record moves the sum by at most clipping_norm (and float rounding). An empty lot gives zeros.
    """
    return scaled_sum(model, Lot(images, labels, clipped(clipping_norm))).total


def clipped(clipping_norm: float) -> Rule:
    """Norms above clipping_norm become clipping_norm; sensitivity: clipping_norm."""

    def scale(norms: torch.Tensor) -> torch.Tensor:
        return (clipping_norm / norms.clamp(min=1e-12)).clamp(max=1.0)

    return scale


def scaled_sum(model: nn.Module, lot: Lot) -> Scaled:
    """Of one lot: `scaled_sums`."""
    (found,) = scaled_sums(model, [lot])
    return found


def scaled_sums(model: nn.Module, lots: list[Lot]) -> list[Scaled]:
    """Of each lot, at the same weights: small lots share passes through the model, and a lot's sum is over its own
    records alone.

    A hostile server's huge weights must not let one record turn the sum into NaN, nor pass with a scale that a float
    cannot hold: where its gradient is not finite, or above LARGEST, it counts as zero.
    """
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    totals = [{name: torch.zeros_like(tensor) for name, tensor in weights.items()} for _ in lots]
    norms = [[torch.zeros(0).double()] for _ in lots]
    gradients, most = (
        (layerwise.parts, CHUNK) if layerwise.serves(model) else (_by_vmap, _held(weights))
    )
    for passed in _passes(lots, most):
        images, labels = (
            torch.cat([getattr(part, name) for part in passed]) for name in ("images", "labels")
        )
        with torch.autocast(
            images.device.type, enabled=False
        ):  # a caller's: norms of eight bits bound no sum
            found = gradients(model, weights, images, labels)
            lengths = sum(layer.squares() for layer in found).sqrt()
            for part in passed:
                own = lengths[part.rows]
                norms[part.lot].append(own.cpu())
                keep = own <= LARGEST  # nan is not
                scale = torch.where(keep, lots[part.lot].rule(own), 0.0).to(images.dtype)
                for layer in found:
                    for name, addend in layer.of(part.rows).sum(keep, scale).items():
                        totals[part.lot][name] += addend
    return [Scaled(total, torch.cat(parts)) for total, parts in zip(totals, norms)]


def _held(weights: Sums) -> int:
    """How many records have their whole gradients in memory together."""
    return max(1, min(CHUNK, HELD // sum(weight.numel() for weight in weights.values())))


def _passes(lots: list[Lot], most: int) -> Iterator[list[Part]]:
    """What goes through the model together, of at most so many records: lots are cut into as few equal parts as that
    allows, and the parts share passes in their order. Nothing of an empty lot."""
    passed, size = [], 0
    for number, lot in enumerate(lots):
        parts = -(-len(lot.labels) // most)
        for images, labels in (
            zip(lot.images.tensor_split(parts), lot.labels.tensor_split(parts)) if parts else ()
        ):
            if size + len(labels) > most and passed:
                yield passed
                passed, size = [], 0
            passed.append(Part(number, images, labels, slice(size, size + len(labels))))
            size += len(labels)
    if passed:
        yield passed


def _by_vmap(
    model: nn.Module, weights: Sums, images: torch.Tensor, labels: torch.Tensor
) -> list[Formed]:
    """Any model that treats records alone; torch.func says so where one does not."""

    def loss(parameters, image, label):
        return F.cross_entropy(functional_call(model, parameters, (image[None],)), label[None])

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(weights, images, labels)
    shapes = {name: tensor.shape for name, tensor in weights.items()}
    return [Formed({name: g.flatten(1) for name, g in gradients.items()}, shapes)]
