"""The gradients of n records in one layer: their norms, and their scaled sum.

What is summed is what the norm was taken of, to the last bit but the rounding of a product: a norm by another order of
summation could be off where hostile weights make the terms of a sum cancel, and the clipping norm would not hold.
"""

from dataclasses import dataclass

import torch

Sums = dict[str, torch.Tensor]
LARGEST = 1e30  # of a norm, or of a factor of one: beyond, scaled floats lose their digits
BLOCK = 256  # of the long sums of squares


@dataclass
class Formed:
    """gradients: {parameter: [n, size]}, of shapes `like`."""

    gradients: Sums
    like: dict[str, torch.Size]

    def of(self, rows: slice) -> "Formed":
        """Of some records alone."""
        return Formed({name: g[rows] for name, g in self.gradients.items()}, self.like)

    def squares(self) -> torch.Tensor:
        """float64 [n]: squared norms, over all its parameters."""
        return sum(_squares(g) for g in self.gradients.values())

    def sum(self, keep: torch.Tensor, scale: torch.Tensor) -> Sums:
        """Of gradients times `scale` [n]; a record that `keep` leaves out adds nothing, be it inf or nan."""
        return {
            name: (scale @ _kept(g, keep)).view(self.like[name])
            for name, g in self.gradients.items()
        }


@dataclass
class Outer:
    """A dense layer: a [n, in], g [n, out]; the gradients are g a^T, and g for the bias if there is one."""

    weight: str
    bias: str | None
    a: torch.Tensor
    g: torch.Tensor

    def of(self, rows: slice) -> "Outer":
        """Of some records alone."""
        return Outer(self.weight, self.bias, self.a[rows], self.g[rows])

    def squares(self) -> torch.Tensor:
        """float64, for the factors' squares overrun floats where the product does not; infinite where a factor is above
        LARGEST."""
        a, g = (x.double().square().sum(1) for x in (self.a, self.g))
        usual = (a <= LARGEST**2) & (g <= LARGEST**2)  # nan is not
        return torch.where(usual, g * (a + bool(self.bias)), torch.inf)

    def sum(self, keep: torch.Tensor, scale: torch.Tensor) -> Sums:
        g = scale[:, None] * _kept(self.g, keep)
        found = {self.weight: g.T @ _kept(self.a, keep)}
        return found | {self.bias: g.sum(0)} if self.bias else found


def _squares(g: torch.Tensor) -> torch.Tensor:
    """float64 [n]: squared norms of rows. By blocks: a float sum over a whole long row is up to 2e-3 too small."""
    even = g.shape[1] - g.shape[1] % BLOCK
    blocks, rest = g[:, :even].reshape(len(g), even // BLOCK, BLOCK), g[:, None, even:]
    return sum(part.norm(dim=-1).double().square().sum(1) for part in (blocks, rest))


def _kept(values: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return values if keep.all() else torch.where(keep[:, None], values, 0.0)
