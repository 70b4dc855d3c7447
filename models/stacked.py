"""Runs many teachers as one stack of tensors [N, ...]: the function of teachers.py, for N at once.

What it saves over N networks run one after the other: images that all teachers share are unfolded
once. Label planes are never made, for the convolution of a constant plane is a map per class, added
like a bias. Pixels that a next layer reads as one patch lie side by side. Row n of every result
depends on teacher n's weights and images alone. `stacked_layers` has the two products and their
gradients.

>>> from models.teachers import TEACHERS
>>> teacher = TEACHERS["mlp"]((8, 8, 1), 10, 32)
>>> weights = initial(teacher, count=5, generator=torch.Generator().manual_seed(0))
>>> batch = shared(torch.zeros(3, 1, 8, 8), torch.tensor([0, 1, 2]), count=5)
>>> logits(teacher, weights, batch).shape
torch.Size([5, 3])
"""

import math
from functools import cache

import torch
import torch.nn.functional as F
from torch import nn

from models.stacked_layers import Convolution, Dense, sides_of
from models.teachers import SLOPE, LabelledConv, Teacher, same

Stack = dict[str, torch.Tensor]
# images [N, B, C, H, W] and int64 labels [N, B]
Batch = tuple[torch.Tensor, torch.Tensor]


def shared(images: torch.Tensor, labels: torch.Tensor, count: int) -> Batch:
    """Returns the same batch for every teacher, with one copy in memory (stride 0 over N).

    Args:
        images: [B, C, H, W].
        labels: int64 [B].
        count: The number N of teachers.
    """
    return images.expand(count, *images.shape), labels.expand(count, *labels.shape)


def initial(teacher: Teacher, count: int, generator: torch.Generator) -> Stack:
    """Draws independent weights for several teachers: uniform within 1 / sqrt(fan in).

    Norms start at scale 1 and shift 0.

    Args:
        teacher: The network that is stacked.
        count: The number N of teachers.
        generator: The random stream. Weights lie on its device.

    Returns:
        Tensors [N, ...] by the names of the teacher's parameters.
    """
    stacked = {}
    on = generator.device
    for name, tensor in teacher.named_parameters():
        if name.startswith("norms"):
            stacked[name] = tensor.detach().expand(count, *tensor.shape).contiguous().to(on)
            continue
        bound = 1 / math.sqrt(teacher.get_submodule(name.rsplit(".", 1)[0]).fan_in)
        draws = torch.rand(count, *tensor.shape, generator=generator, device=on)
        stacked[name] = draws.mul_(2 * bound).sub_(bound)
    return {name: tensor.requires_grad_() for name, tensor in stacked.items()}


def logits(teacher: Teacher, weights: Stack, *batches: Batch) -> torch.Tensor:
    """Returns the logits of each teacher on the batches, one after the other.

    Args:
        teacher: The network that is stacked.
        weights: Its stacked weights.
        *batches: Images [N, B, C, H, W] and labels [N, B], where each batch may have its own B.

    Returns:
        [N, sum of all B].
    """
    parts = []
    for images, labels in batches:
        onehot = F.one_hot(labels, teacher.classes).to(images.dtype)
        parts.append((images.permute(0, 1, 3, 4, 2), onehot))
    all_labels = _all_labels(parts)
    for number, layer in enumerate(teacher.layers):
        layer_weights = _part(weights, f"layers.{number}.")
        if isinstance(layer, LabelledConv):
            x = _convolved(layer, layer_weights, parts, following=teacher.layers[number + 1])
        else:
            x = _dense(layer_weights, parts)
        if number < len(teacher.layers) - 1:
            normalised = _normalised(x, _part(weights, f"norms.{number}."))
            x = F.leaky_relu(normalised, SLOPE, inplace=True)
        parts = [(x, all_labels)]
    return x.squeeze(2)


def _all_labels(parts: list[Batch]) -> torch.Tensor:
    """Returns the one-hot labels [N, all B, classes] of the parts, one after the other."""
    return torch.cat([labels for _, labels in parts], 1)


def _part(weights: Stack, prefix: str) -> Stack:
    part = {}
    for name, tensor in weights.items():
        if name.startswith(prefix):
            part[name.removeprefix(prefix)] = tensor
    return part


def _dense(weights: Stack, parts: list[Batch]) -> torch.Tensor:
    x = torch.cat([x.flatten(2) for x, _ in parts], 1)
    maps = weights["label_weight"].transpose(1, 2) + weights["bias"][:, None]
    return Dense.apply(x, weights["weight"], _all_labels(parts), maps)


def _convolved(
    layer: LabelledConv, weights: Stack, parts: list[Batch], *, following: nn.Module
) -> torch.Tensor:
    height, width = sides_of(parts[0][0])
    tile = _tile(layer, following, (height, width))
    maps = _label_maps(
        weights["label_weight"], weights["bias"], (height, width), layer.stride, tile
    )
    images = [x for x, _ in parts]
    labels = _all_labels(parts)
    return Convolution.apply(weights["weight"], labels, maps, layer.stride, tile, *images)


def _tile(layer: LabelledConv, following: nn.Module, sides: tuple[int, int]) -> int:
    """Returns the side of the next layer's patches where they cut the output into tiles, or 1."""
    if not isinstance(following, LabelledConv):
        return 1
    side = following.weight.shape[1]
    outputs = [same(pixels, layer.weight.shape[1], layer.stride)[0] for pixels in sides]
    tiled = side == following.stride and all(pixels % side == 0 for pixels in outputs)
    return side if tiled else 1


def _label_maps(
    weight: torch.Tensor, bias: torch.Tensor, sides: tuple[int, int], stride: int, tile: int
) -> torch.Tensor:
    """Returns [N, classes, H' W' out]: what a plane of ones adds for each class, and the bias.

    At the borders it adds less. Pixels have the order of the output, in tiles.
    """
    count, out, kernel, _, classes = weight.shape
    taps = weight.flatten(2, 3).permute(0, 2, 3, 1).reshape(count, kernel**2, classes * out)
    inside = _inside(*sides, kernel, stride, tile).to(weight)
    maps = torch.matmul(inside, taps).view(count, -1, classes, out)
    return (maps + bias[:, None, None]).transpose(1, 2).reshape(count, classes, -1)


@cache
def _inside(height: int, width: int, kernel: int, stride: int, tile: int) -> torch.Tensor:
    """Returns [H' W', kernel²]: one where a tap falls on the image, zero on the padding."""
    across, columns = same(width, kernel, stride)
    down, rows = same(height, kernel, stride)
    ones = F.pad(torch.ones(1, 1, height, width), (*columns, *rows))
    taps = F.unfold(ones, kernel, stride=stride)[0].T
    in_tiles = taps.reshape(down // tile, tile, across // tile, tile, -1).transpose(1, 2)
    return in_tiles.flatten(0, 3).contiguous()


def _normalised(x: torch.Tensor, norm: Stack) -> torch.Tensor:
    """Returns x [N, B, ..., channels] after the norm of its layer, if the layer has one."""
    if not norm:
        return x
    shape = (len(x), *(1,) * (x.ndim - 2), -1)
    flat = x.flatten(2)
    return torch.addcmul(
        norm["shift"].view(shape),
        F.layer_norm(flat, flat.shape[2:]).view_as(x),
        norm["scale"].view(shape),
    )
