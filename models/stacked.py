"""Many teachers as one stack of tensors [N, ...]: the same function as teachers.py, for N networks at once.

What it saves over N networks run one after the other: images that all teachers share are unfolded once and meet the
first layer of all of them in one matrix product; label planes are never made, for the convolution of a constant plane
is a map per class, added like a bias. Row n of every result depends on teacher n's weights and images alone.
"""

import math
from functools import cache

import torch
import torch.nn.functional as F

from models.teachers import SLOPE, LabelledConv, LabelledDense, Teacher, same

Stack = dict[str, torch.Tensor]
Batch = tuple[torch.Tensor, torch.Tensor]  # images [N, B, C, H, W] and int64 labels [N, B]; N = 1: shared by all


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
    (first, *rest), count = teacher.layers, len(next(iter(weights.values())))
    onehots = [F.one_hot(labels, teacher.classes).to(images.dtype) for images, labels in batches]
    labels = torch.cat([onehot.expand(count, -1, -1) for onehot in onehots], 1)
    own = _part(weights, "layers.0.")
    x = torch.cat([FORMS[type(first)](first, own, images.permute(0, 1, 3, 4, 2), onehot)
                   for (images, _), onehot in zip(batches, onehots)], 1)  # fmt: skip
    for number, layer in enumerate(rest, start=1):
        x = F.leaky_relu(_normalised(x, _part(weights, f"norms.{number - 1}.")), SLOPE, inplace=True)
        x = FORMS[type(layer)](layer, _part(weights, f"layers.{number}."), x, labels)
    return x.squeeze(2)


def _part(weights: Stack, prefix: str) -> Stack:
    return {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}


def _dense(layer: LabelledDense, own: Stack, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    x = torch.cat([x.flatten(2), labels.expand(len(x), -1, -1)], 2)
    return Dense.apply(x.expand(len(own["bias"]), -1, -1), own["weight"], own["bias"])


def _convolved(layer: LabelledConv, own: Stack, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    out = Convolution.apply(x, own["weight"], layer.stride)
    count, batch = out.shape[:2]
    maps = _label_maps(own["label_weight"], own["bias"], x.shape[2:4], layer.stride)
    return out.view(count, batch, -1).baddbmm_(labels.expand(count, -1, -1), maps).view_as(out)


def _label_maps(weight: torch.Tensor, bias: torch.Tensor, sides: torch.Size, stride: int) -> torch.Tensor:
    """[N, classes, H' W' out]: what a plane of ones adds for each class, less at the borders, and the bias."""
    count, out, kernel, _, classes = weight.shape
    taps = weight.flatten(2, 3).permute(0, 2, 3, 1).reshape(count, kernel**2, classes * out)
    maps = torch.matmul(_inside(*sides, kernel, stride).to(weight), taps).view(count, -1, classes, out)
    return (maps + bias[:, None, None]).transpose(1, 2).reshape(count, classes, -1)


@cache
def _inside(height: int, width: int, kernel: int, stride: int) -> torch.Tensor:
    """[H' W', kernel²]: one where a tap falls on the image, zero where it falls on the padding."""
    ones = F.pad(torch.ones(1, 1, height, width), (*same(width, kernel, stride)[1], *same(height, kernel, stride)[1]))
    return F.unfold(ones, kernel, stride=stride)[0].T.contiguous()


def _normalised(x: torch.Tensor, own: Stack) -> torch.Tensor:
    if not own:
        return x
    shape = (len(x), *(1,) * (x.ndim - 2), -1)
    flat = x.flatten(2)
    return torch.addcmul(
        own["shift"].view(shape), F.layer_norm(flat, flat.shape[2:]).view_as(x), own["scale"].view(shape)
    )


class Dense(torch.autograd.Function):
    """x [N, B, in], weight [N, out, in], bias [N, out] -> [N, B, out]. Autograd's own form would give the weight's
    gradient transposed, and copy it."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return torch.baddbmm(bias[:, None], x, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        to_x, to_weight, to_bias = ctx.needs_input_grad
        return (
            torch.bmm(gradient, weight) if to_x else None,
            torch.bmm(gradient.transpose(1, 2), x) if to_weight else None,
            gradient.sum(1) if to_bias else None,
        )


class Convolution(torch.autograd.Function):
    """x [N or 1, B, H, W, C], weight [N, out, k, k, C] -> [N, B, H', W', out], as one product over unfolded patches."""

    @staticmethod
    def forward(ctx, x, weight, stride):
        count, out, kernel = weight.shape[:3]
        (height, rows), (width, columns) = (same(side, kernel, stride) for side in x.shape[2:4])
        padded = F.pad(x, (0, 0, *columns, *rows)).contiguous()
        patches = _patches(padded, height, width, kernel, stride)
        ctx.geometry = padded.shape, (rows[0], columns[0]), x.shape, stride
        ctx.save_for_backward(patches if ctx.needs_input_grad[1] else None, weight)
        result = x.new_empty(count, x.shape[1], height, width, out)  # no view: bias maps are added in place
        flat = result.view(count, -1, out)
        if len(x) < count:  # shared images: one wide product for all teachers
            flat.copy_((patches[0] @ weight.view(count * out, -1).T).view(-1, count, out).transpose(0, 1))
        else:
            torch.bmm(patches, weight.flatten(2).transpose(1, 2), out=flat)
        return result

    @staticmethod
    def backward(ctx, gradient):
        patches, weight = ctx.saved_tensors
        count, out = weight.shape[:2]
        flat = gradient.reshape(count, -1, out)
        to_x = (
            _folded(torch.bmm(flat, weight.flatten(2)), gradient.shape, weight, ctx.geometry)
            if ctx.needs_input_grad[0]
            else None
        )
        to_weight = None
        if ctx.needs_input_grad[1]:
            to_weight = torch.bmm(flat.transpose(1, 2), patches.expand(count, -1, -1)).view_as(weight)
        return to_x, to_weight, None


def _patches(padded: torch.Tensor, height: int, width: int, kernel: int, stride: int) -> torch.Tensor:
    """[N, B H' W', k k C]."""
    count, batch, _, _, channels = padded.shape
    one, image, row, column, _ = padded.stride()
    shape = (count, batch, height, width, kernel, kernel * channels)
    view = padded.as_strided(shape, (one, image, row * stride, column * stride, row, 1))
    return view.reshape(count, batch * height * width, -1)


def _folded(patches: torch.Tensor, out: torch.Size, weight: torch.Tensor, geometry: tuple) -> torch.Tensor:
    """The transpose of `_patches`: every tap's part added where it came from, the padding cut off."""
    padded, (top, left), shape, stride = geometry
    (height, width), kernel = out[2:4], weight.shape[2]
    taps = patches.view(*out[:4], kernel, kernel, -1)
    image = patches.new_zeros(len(patches), *padded[1:])
    for row in range(kernel):
        for column in range(kernel):
            image[:, :, row : row + stride * height : stride, column : column + stride * width : stride] += taps[
                :, :, :, :, row, column
            ]
    return image[:, :, top : top + shape[2], left : left + shape[3]]


FORMS = {LabelledDense: _dense, LabelledConv: _convolved}
