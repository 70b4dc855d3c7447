"""Many teachers as one stack of tensors [N, ...]: the same function as teachers.py, for N networks at once.

What it saves over N networks run one after the other: images that all teachers share are unfolded once and meet the
first layer of all of them in one matrix product; label planes are never made, for the convolution of a constant plane
is a map per class, added like a bias. Row n of every result depends on teacher n's weights and images alone.
"""

import math
from collections.abc import Sequence
from functools import cache

import torch
import torch.nn.functional as F

from models.teachers import SLOPE, LabelledConv, LabelledDense, Teacher, same

Stack = dict[str, torch.Tensor]
Batch = tuple[torch.Tensor, torch.Tensor]  # images [N, B, C, H, W] and int64 labels [N, B]


def shared(images: torch.Tensor, labels: torch.Tensor, count: int) -> Batch:
    """The same images [B, C, H, W] and labels [B] for every teacher: one copy in memory (stride 0 over N)."""
    return images.expand(count, *images.shape), labels.expand(count, *labels.shape)


def initial(teacher: Teacher, count: int, generator: torch.Generator) -> Stack:
    """Independent weights for `count` copies: uniform within 1 / sqrt(fan in); norms start at scale 1 and shift 0."""
    stacked, on = {}, generator.device
    for name, tensor in teacher.named_parameters():
        if name.startswith("norms"):
            stacked[name] = tensor.detach().expand(count, *tensor.shape).contiguous().to(on)
            continue
        bound = 1 / math.sqrt(teacher.get_submodule(name.rsplit(".", 1)[0]).fan_in)
        draws = torch.rand(count, *tensor.shape, generator=generator, device=on)
        stacked[name] = draws.mul_(2 * bound).sub_(bound)
    return {name: tensor.requires_grad_() for name, tensor in stacked.items()}


def logits(teacher: Teacher, weights: Stack, *batches: Batch) -> torch.Tensor:
    """[N, all batches' B]: each teacher on the batches, one after the other."""
    parts = [
        (images.permute(0, 1, 3, 4, 2), F.one_hot(labels, teacher.classes).to(images.dtype))
        for images, labels in batches
    ]
    everyone = torch.cat([labels for _, labels in parts], 1)
    for number, layer in enumerate(teacher.layers):
        x = FORMS[type(layer)](layer, _part(weights, f"layers.{number}."), parts)
        if number < len(teacher.layers) - 1:
            x = F.leaky_relu(
                _normalised(x, _part(weights, f"norms.{number}.")), SLOPE, inplace=True
            )
        parts = [(x, everyone)]
    return x.squeeze(2)


def _part(weights: Stack, prefix: str) -> Stack:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in weights.items()
        if name.startswith(prefix)
    }


def _dense(layer: LabelledDense, own: Stack, parts: list[Batch]) -> torch.Tensor:
    x = torch.cat([x.flatten(2) for x, _ in parts], 1)
    maps = own["label_weight"].transpose(1, 2) + own["bias"][:, None]
    return Dense.apply(x, own["weight"], torch.cat([labels for _, labels in parts], 1), maps)


def _convolved(layer: LabelledConv, own: Stack, parts: list[Batch]) -> torch.Tensor:
    maps = _label_maps(own["label_weight"], own["bias"], parts[0][0].shape[2:4], layer.stride)
    labels = torch.cat([labels for _, labels in parts], 1)
    return Convolution.apply(own["weight"], labels, maps, layer.stride, *(x for x, _ in parts))


def _label_maps(
    weight: torch.Tensor, bias: torch.Tensor, sides: torch.Size, stride: int
) -> torch.Tensor:
    """[N, classes, H' W' out]: what a plane of ones adds for each class, less at the borders, and the bias."""
    count, out, kernel, _, classes = weight.shape
    taps = weight.flatten(2, 3).permute(0, 2, 3, 1).reshape(count, kernel**2, classes * out)
    maps = torch.matmul(_inside(*sides, kernel, stride).to(weight), taps).view(
        count, -1, classes, out
    )
    return (maps + bias[:, None, None]).transpose(1, 2).reshape(count, classes, -1)


@cache
def _inside(height: int, width: int, kernel: int, stride: int) -> torch.Tensor:
    """[H' W', kernel²]: one where a tap falls on the image, zero where it falls on the padding."""
    ones = F.pad(
        torch.ones(1, 1, height, width),
        (*same(width, kernel, stride)[1], *same(height, kernel, stride)[1]),
    )
    return F.unfold(ones, kernel, stride=stride)[0].T.contiguous()


def _normalised(x: torch.Tensor, own: Stack) -> torch.Tensor:
    if not own:
        return x
    shape = (len(x), *(1,) * (x.ndim - 2), -1)
    flat = x.flatten(2)
    return torch.addcmul(
        own["shift"].view(shape),
        F.layer_norm(flat, flat.shape[2:]).view_as(x),
        own["scale"].view(shape),
    )


class Dense(torch.autograd.Function):
    """x [N, B, in], weight [N, out, in], one-hot labels [N, B, classes], maps [N, classes, out] -> [N, B, out].

    Autograd's own form would give the weight's gradient transposed, and copy it."""

    @staticmethod
    def forward(ctx, x, weight, labels, maps):
        ctx.save_for_backward(x, weight, labels)
        return torch.bmm(labels, maps).baddbmm_(x, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx, gradient):
        x, weight, labels = ctx.saved_tensors
        to_x, to_weight, _, to_maps = ctx.needs_input_grad
        return (
            torch.bmm(gradient, weight) if to_x else None,
            torch.bmm(gradient.transpose(1, 2), x) if to_weight else None,
            None,
            torch.bmm(labels.transpose(1, 2), gradient) if to_maps else None,
        )


class Convolution(torch.autograd.Function):
    """weight [N, out, k, k, C], labels [N, all B, classes], maps [N, classes, H' W' out] and any number of image
    batches [N, B, H, W, C] -> [N, all B, H', W', out], as one product over unfolded patches per batch. Images that the
    teachers share (stride 0) are unfolded once, and meet all their weights in one wide product."""

    @staticmethod
    def forward(ctx, weight, labels, maps, stride, *batches):
        count, out, kernel = weight.shape[:3]
        (height, rows), (width, columns) = (
            same(side, kernel, stride) for side in batches[0].shape[2:4]
        )
        result = weight.new_empty(count, labels.shape[1], height, width, out)
        unfolded = []
        for x, flat in zip(batches, _flat_parts(result, batches)):
            same_for_all = x.stride(0) == 0
            padded = F.pad(x[:1] if same_for_all else x, (0, 0, *columns, *rows)).contiguous()
            patches = _patches(padded, height, width, kernel, stride)
            unfolded.append(patches if ctx.needs_input_grad[0] else None)
            if same_for_all:
                flat.copy_(
                    (patches[0] @ weight.view(count * out, -1).T)
                    .view(-1, count, out)
                    .transpose(0, 1)
                )
            else:
                torch.bmm(patches, weight.flatten(2).transpose(1, 2), out=flat)
        result.view(count, labels.shape[1], -1).baddbmm_(labels, maps)
        ctx.geometry, ctx.shapes = (
            (padded.shape[2:4], (rows[0], columns[0]), stride),
            [x.shape for x in batches],
        )
        ctx.save_for_backward(weight, labels, *unfolded)
        return result

    @staticmethod
    def backward(ctx, gradient):
        weight, labels, *unfolded = ctx.saved_tensors
        to_weight, _, to_maps, _, *to_batches = ctx.needs_input_grad
        flats = _flat_parts(gradient, ctx.shapes)
        kernels = weight.flatten(2)
        images = [
            _folded(torch.bmm(flat, kernels).view(len(weight), shape[1], *gradient.shape[2:4], *weight.shape[2:]),
                    shape[2:4], *ctx.geometry) if wanted else None
            for flat, shape, wanted in zip(flats, ctx.shapes, to_batches)
        ]  # fmt: skip
        return (
            _weight_gradient(flats, unfolded).view_as(weight) if to_weight else None,
            None,
            torch.bmm(labels.transpose(1, 2), gradient.flatten(2)) if to_maps else None,
            None,
            *images,
        )


def _flat_parts(result: torch.Tensor, batches: Sequence) -> list[torch.Tensor]:
    """Views [N, B H' W', out] of a result [N, all B, H', W', out], one per batch (or shape of a batch)."""
    sizes = [shape[1] for shape in (getattr(batch, "shape", batch) for batch in batches)]
    return [part.flatten(1, 3) for part in result.split(sizes, 1)]


def _weight_gradient(flats: list[torch.Tensor], unfolded: list[torch.Tensor]) -> torch.Tensor:
    """[N, out, k k C], summed over the batches."""
    first, *rest = (
        torch.bmm(flat.transpose(1, 2), patches.expand(len(flat), -1, -1))
        for flat, patches in zip(flats, unfolded)
    )
    return sum(rest, start=first)


def _patches(
    padded: torch.Tensor, height: int, width: int, kernel: int, stride: int
) -> torch.Tensor:
    """[N, B H' W', k k C]."""
    count, batch, _, _, channels = padded.shape
    one, image, row, column, _ = padded.stride()
    shape = (count, batch, height, width, kernel, kernel * channels)
    view = padded.as_strided(shape, (one, image, row * stride, column * stride, row, 1))
    return view.reshape(count, batch * height * width, -1)


def _folded(
    taps: torch.Tensor,
    sides: tuple[int, int],
    padded: tuple[int, int],
    before: tuple[int, int],
    stride: int,
) -> torch.Tensor:
    """[N, B, H', W', k, k, C] -> [N, B, H, W, C], the transpose of `_patches`: every tap's part added where it came
    from, the padding cut off."""
    count, batch, height, width, kernel, _, channels = taps.shape
    if kernel == stride:  # patches do not overlap
        image = taps.transpose(3, 4).reshape(
            count, batch, height * kernel, width * kernel, channels
        )
    else:
        image = taps.new_zeros(count, batch, *padded, channels)
        for row in range(kernel):
            for column in range(kernel):
                rows, columns = (
                    slice(at, at + stride * n, stride) for at, n in ((row, height), (column, width))
                )
                image[:, :, rows, columns] += taps[:, :, :, :, row, column]
    return image[:, :, before[0] : before[0] + sides[0], before[1] : before[1] + sides[1]]


FORMS = {LabelledDense: _dense, LabelledConv: _convolved}
