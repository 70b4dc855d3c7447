"""Holds the gradients of n records in one layer: their norms, and their scaled sum.

What is summed is what the norm was taken of, to the last bit but the rounding of a product. A norm
by another order of summation could be off where hostile weights make the terms of a sum cancel, and
the clipping norm would not hold.
"""

from dataclasses import dataclass

import torch

Sums = dict[str, torch.Tensor]
# of a norm, or of a factor of one: beyond, scaled floats lose their digits
LARGEST = 1e30
# of the long sums of squares
BLOCK = 256


@dataclass
class Formed:
    """Holds gradients that were formed.

    Attributes:
        gradients: [n, size] by the parameter's name.
        like: The parameter's shape by its name.
    """

    gradients: Sums
    like: dict[str, torch.Size]

    def of(self, rows: slice) -> "Formed":
        """Returns the gradients of some records alone."""
        return Formed({name: g[rows] for name, g in self.gradients.items()}, self.like)

    def squares(self) -> torch.Tensor:
        """Returns the squared norms over all parameters, float64 [n]."""
        return sum(map(_squares, self.gradients.values()))

    def sum(self, keep: torch.Tensor, scale: torch.Tensor) -> Sums:
        """Returns the sum of gradients times `scale` [n].

        A record that `keep` leaves out adds nothing, be it inf or nan.
        """
        sums = {}
        for name, gradients in self.gradients.items():
            sums[name] = (scale @ _selected(gradients, keep)).view(self.like[name])
        return sums


@dataclass
class Outer:
    """Holds gradients of a dense layer, which are g a^T, and g for the bias if there is one.

    Attributes:
        weight: The name of the weight.
        bias: The name of the bias, or None.
        a: What went into the layer, [n, in].
        g: The gradient of the loss to the layer's output, [n, out].
    """

    weight: str
    bias: str | None
    a: torch.Tensor
    g: torch.Tensor

    def of(self, rows: slice) -> "Outer":
        """Returns the gradients of some records alone."""
        return Outer(self.weight, self.bias, self.a[rows], self.g[rows])

    def squares(self) -> torch.Tensor:
        """Returns the squared norms, float64 [n], infinite where a factor is above LARGEST.

        The factors' squares overrun floats where the product does not.
        """
        a = self.a.double().square().sum(1)
        g = self.g.double().square().sum(1)
        # nan is not
        usual = (a <= LARGEST**2) & (g <= LARGEST**2)
        return torch.where(usual, g * (a + bool(self.bias)), torch.inf)

    def sum(self, keep: torch.Tensor, scale: torch.Tensor) -> Sums:
        """Returns the sum of gradients times `scale` [n]; `keep` leaves out records."""
        g = scale[:, None] * _selected(self.g, keep)
        sums = {self.weight: g.T @ _selected(self.a, keep)}
        if self.bias:
            sums[self.bias] = g.sum(0)
        return sums


def _squares(g: torch.Tensor) -> torch.Tensor:
    """Returns the squared norms of rows, float64 [n].

    They are summed by blocks: a float sum over a whole long row is up to 2e-3 too small.
    """
    even = g.shape[1] - g.shape[1] % BLOCK
    blocks = g[:, :even].reshape(len(g), even // BLOCK, BLOCK)
    rest = g[:, None, even:]
    return _squared_norms(blocks) + _squared_norms(rest)


def _squared_norms(blocks: torch.Tensor) -> torch.Tensor:
    """Returns the squared norms [n] of blocks [n, count, size]."""
    return blocks.norm(dim=-1).double().square().sum(1)


def _selected(values: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return values if keep.all() else torch.where(keep[:, None], values, 0.0)
