"""Defines conditional discriminators: an image and its label in, one logit out. Is it real?

One network is here in plain form, layer by layer as DataLens' code has it: the label's one-hot
vector, or a constant plane per class, beside the input of every layer. stacked.py runs many of them
at once and must agree with this form.

>>> teacher = TEACHERS["mlp"]((8, 8, 1), 10, 32)
>>> teacher(torch.zeros(3, 1, 8, 8), torch.tensor([0, 1, 2])).shape
torch.Size([3])
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

# (outputs, padding before and after) along one side
Geometry = tuple[int, tuple[int, int]]
# of the leaky ReLU
SLOPE = 0.2


def same(side: int, kernel: int, stride: int) -> Geometry:
    """Returns TensorFlow's SAME: ceil(side / stride) outputs, the odd pixel of padding last.

    Args:
        side: Pixels along one side of an image.
        kernel: Pixels along one side of the kernel.
        stride: The stride.

    >>> same(28, 5, 2)
    (14, (1, 2))
    """
    outputs = -(-side // stride)
    padding = max(0, (outputs - 1) * stride + kernel - side)
    return outputs, (padding // 2, padding - padding // 2)


class Norm(nn.Module):
    """Brings each image on its own to mean 0 and variance 1, then scales and shifts per channel.

    The paper's networks have batch norm here, of as many parameters. It would tie the images of a
    batch together, and each fake is a query of its own.
    """

    def __init__(self, channels: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns x [B, ..., channels], normalised, in the same shape."""
        return F.layer_norm(x.flatten(1), (x[0].numel(),)).view_as(x) * self.scale + self.shift


class LabelledConv(nn.Module):
    """Convolves (SAME) an image and one constant plane per class.

    Args:
        channels: The channels of the input.
        out: The channels of the output.
        classes: The declared number of classes.
        kernel: Pixels along one side of the kernel.
        stride: The stride.
    """

    def __init__(self, channels: int, out: int, *, classes: int, kernel: int, stride: int):
        super().__init__()
        self.stride = stride
        self.fan_in = kernel**2 * (channels + classes)
        self.weight = nn.Parameter(torch.zeros(out, kernel, kernel, channels))
        self.label_weight = nn.Parameter(torch.zeros(out, kernel, kernel, classes))
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Returns [B, H', W', out] of images [B, H, W, channels] and one-hot [B, classes]."""
        planes = labels[:, None, None].expand(-1, *images.shape[1:3], -1)
        inputs = torch.cat([images, planes], 3).permute(0, 3, 1, 2)
        weight = torch.cat([self.weight, self.label_weight], 3).permute(0, 3, 1, 2)
        _, rows = same(images.shape[1], weight.shape[2], self.stride)
        _, columns = same(images.shape[2], weight.shape[2], self.stride)
        padded = F.pad(inputs, (*columns, *rows))
        return F.conv2d(padded, weight, self.bias, self.stride).permute(0, 2, 3, 1)


class LabelledDense(nn.Module):
    """Is a linear layer on a flattened image and its one-hot label.

    Args:
        features: The number of values of the input.
        out: The number of outputs.
        classes: The declared number of classes.
    """

    def __init__(self, features: int, out: int, *, classes: int):
        super().__init__()
        self.fan_in = features + classes
        self.weight = nn.Parameter(torch.zeros(out, features))
        self.label_weight = nn.Parameter(torch.zeros(out, classes))
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Returns [B, out] of x [B, ...] and one-hot [B, classes]."""
        return F.linear(
            torch.cat([x.flatten(1), labels], 1),
            torch.cat([self.weight, self.label_weight], 1),
            self.bias,
        )


class Teacher(nn.Module):
    """Chains layers with leaky ReLUs between them.

    Weights are zero until `stacked.initial` draws them.

    Args:
        layers: The layers in their order.
        norms: A layer's norm under its number.
        classes: The declared number of classes.
    """

    def __init__(self, layers: list[nn.Module], norms: dict[int, Norm], classes: int):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.classes = classes
        self.norms = nn.ModuleDict({str(number): norm for number, norm in norms.items()})

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Returns the logits [B] of images [B, C, H, W] and labels int64 [B]."""
        x = images.permute(0, 2, 3, 1)
        labels = F.one_hot(labels, self.classes).to(images.dtype)
        for number, layer in enumerate(self.layers):
            x = layer(x, labels)
            x = self.norms[str(number)](x) if str(number) in self.norms else x
            x = F.leaky_relu(x, SLOPE) if number < len(self.layers) - 1 else x
        return x.squeeze(1)


def mlp(shape: tuple[int, int, int], classes: int, hidden: int) -> Teacher:
    """Builds a teacher with one hidden layer, for small images.

    Args:
        shape: (height, width, channels) of an image.
        classes: The declared number of classes.
        hidden: The width of the hidden layer.
    """
    layers = [
        LabelledDense(math.prod(shape), hidden, classes=classes),
        LabelledDense(hidden, 1, classes=classes),
    ]
    return Teacher(layers, {}, classes)


def compact(shape: tuple[int, int, int], classes: int, hidden: int) -> Teacher:
    """Builds a teacher of two small convolutions and one hidden layer.

    It has 58 k parameters on 28x28x1 with 10 classes and 32 hidden units.

    Args:
        shape: (height, width, channels) of an image.
        classes: The declared number of classes.
        hidden: The width of the hidden layer.
    """
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
    """Builds DataLens' own teacher, as in its code.

    It has 555,655 parameters on 28x28x1 with 10 classes.

    Args:
        shape: (height, width, channels) of an image.
        classes: The declared number of classes.
        hidden: Not used.
    """
    height, width, channels = shape
    pixels = -(-height // 4) * -(-width // 4)
    first = channels + classes
    second = 32 + classes
    dense = 256
    layers = [
        LabelledConv(channels, first, classes=classes, kernel=5, stride=2),
        LabelledConv(first, second, classes=classes, kernel=5, stride=2),
        LabelledDense(second * pixels, dense, classes=classes),
        LabelledDense(dense, 1, classes=classes),
    ]
    return Teacher(layers, {1: Norm(second), 2: Norm(dense)}, classes)


TEACHERS = {"mlp": mlp, "compact": compact, "paper": paper}
