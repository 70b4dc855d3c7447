"""Conditional discriminators: an image and its label in, one logit out. Is it real?

One network in plain form, layer by layer as DataLens' code has it: the label's one-hot vector, or a constant plane per
class, beside the input of every layer. stacked.py runs many of them at once and must agree with this form.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

Geometry = tuple[int, tuple[int, int]]  # (outputs, padding before and after) along one side
SLOPE = 0.2  # of the leaky ReLU


def same(side: int, kernel: int, stride: int) -> Geometry:
    """TensorFlow's SAME: ceil(side / stride) outputs, the odd pixel of padding at the end."""
    outputs = -(-side // stride)
    padding = max(0, (outputs - 1) * stride + kernel - side)
    return outputs, (padding // 2, padding - padding // 2)


class Norm(nn.Module):
    """Each image on its own to mean 0 and variance 1, then a scale and a shift per channel.

    The paper's networks have batch norm here, of as many parameters. It would tie the images of a batch together, and
    each fake is a query of its own.
    """

    def __init__(self, channels: int):
        super().__init__()
        self.scale, self.shift = (
            nn.Parameter(torch.ones(channels)),
            nn.Parameter(torch.zeros(channels)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[B, ..., channels], same shape."""
        return F.layer_norm(x.flatten(1), (x[0].numel(),)).view_as(x) * self.scale + self.shift


class LabelledConv(nn.Module):
    """SAME convolution of an image and one constant plane per class."""

    def __init__(self, channels: int, out: int, *, classes: int, kernel: int, stride: int):
        super().__init__()
        self.stride, self.fan_in = stride, kernel**2 * (channels + classes)
        self.weight = nn.Parameter(torch.zeros(out, kernel, kernel, channels))
        self.label_weight = nn.Parameter(torch.zeros(out, kernel, kernel, classes))
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """[B, H, W, channels] and one-hot [B, classes] -> [B, H', W', out]."""
        planes = labels[:, None, None].expand(-1, *images.shape[1:3], -1)
        inputs = torch.cat([images, planes], 3).permute(0, 3, 1, 2)
        weight = torch.cat([self.weight, self.label_weight], 3).permute(0, 3, 1, 2)
        rows, columns = (same(side, weight.shape[2], self.stride)[1] for side in images.shape[1:3])
        return F.conv2d(F.pad(inputs, (*columns, *rows)), weight, self.bias, self.stride).permute(
            0, 2, 3, 1
        )


class LabelledDense(nn.Module):
    """Linear layer on a flattened image and its one-hot label."""

    def __init__(self, features: int, out: int, *, classes: int):
        super().__init__()
        self.fan_in = features + classes
        self.weight = nn.Parameter(torch.zeros(out, features))
        self.label_weight = nn.Parameter(torch.zeros(out, classes))
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """[B, ...] and one-hot [B, classes] -> [B, out]."""
        return F.linear(
            torch.cat([x.flatten(1), labels], 1),
            torch.cat([self.weight, self.label_weight], 1),
            self.bias,
        )


class Teacher(nn.Module):
    """Layers with leaky ReLUs between them; `norms` holds a layer's norm under its number.

    Weights are zero until `stacked.initial` draws them.
    """

    def __init__(self, layers: list[nn.Module], norms: dict[int, Norm], classes: int):
        super().__init__()
        self.layers, self.classes = nn.ModuleList(layers), classes
        self.norms = nn.ModuleDict({str(number): norm for number, norm in norms.items()})

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """[B, C, H, W] and int64 [B] -> logits [B]."""
        x, labels = images.permute(0, 2, 3, 1), F.one_hot(labels, self.classes).to(images.dtype)
        for number, layer in enumerate(self.layers):
            x = layer(x, labels)
            x = self.norms[str(number)](x) if str(number) in self.norms else x
            x = F.leaky_relu(x, SLOPE) if number < len(self.layers) - 1 else x
        return x.squeeze(1)


def mlp(shape: tuple[int, int, int], classes: int, hidden: int) -> Teacher:
    """One hidden layer, for small images."""
    layers = [
        LabelledDense(math.prod(shape), hidden, classes=classes),
        LabelledDense(hidden, 1, classes=classes),
    ]
    return Teacher(layers, {}, classes)


def compact(shape: tuple[int, int, int], classes: int, hidden: int) -> Teacher:
    """Two small convolutions, then `hidden` units: 58 k parameters on 28x28x1 with 10 classes and 32 units."""
    height, width, channels = shape
    pixels = -(-height // 4) * -(-width // 4)
    layers = [
        LabelledConv(channels, 16, classes=classes, kernel=4, stride=2),
        LabelledConv(16, 32, classes=classes, kernel=2, stride=2),
        LabelledDense(32 * pixels, hidden, classes=classes),
        LabelledDense(hidden, 1, classes=classes),
    ]
    return Teacher(layers, {}, classes)


def paper(shape: tuple[int, int, int], classes: int, hidden: int) -> Teacher:
    """DataLens' own, as in its code: 555,655 parameters on 28x28x1 with 10 classes; `hidden` is not used."""
    height, width, channels = shape
    pixels = -(-height // 4) * -(-width // 4)
    first, second, dense = channels + classes, 32 + classes, 256
    layers = [
        LabelledConv(channels, first, classes=classes, kernel=5, stride=2),
        LabelledConv(first, second, classes=classes, kernel=5, stride=2),
        LabelledDense(second * pixels, dense, classes=classes),
        LabelledDense(dense, 1, classes=classes),
    ]
    return Teacher(layers, {1: Norm(second), 2: Norm(dense)}, classes)


TEACHERS = {"mlp": mlp, "compact": compact, "paper": paper}
