"""Maps figures to places on an axis, in percent of its length, and chooses round numbers for it.

Percent, for a plot of the page is as wide as its room: its lines stretch, and its text does not.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

# An axis has about so many round numbers.
TICKS = 4
# The part of an axis that stays empty at either end, so that no mark is cut.
MARGIN = 0.04


class Scale(NamedTuple):
    """Holds the ends of an axis.

    Attributes:
        low: The figure at 0 percent.
        high: The figure at 100 percent.
    """

    low: float
    high: float

    def place(self, value: float) -> float:
        """Returns the place of a figure, in percent from the low end.

        Example:
            >>> Scale(0.0, 2.0).place(0.5)
            25.0
        """
        return round(100 * (value - self.low) / (self.high - self.low), 2)

    def ticks(self) -> list[float]:
        """Returns the round numbers on the axis, rising.

        Example:
            >>> Scale(-0.03, 0.11).ticks()
            [0.0, 0.05, 0.1]
        """
        step = _round_step((self.high - self.low) / TICKS)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(count * step, 10) for count in range(first, last + 1)]


def around(values: Iterable[float]) -> Scale:
    """Returns a scale that holds all the figures, with a margin at either end.

    Args:
        values: The figures. Of equal ones, or of none, the axis is one wide.
    """
    held = list(values)
    low = min(held, default=0.0)
    high = max(held, default=0.0)
    if low == high:
        return Scale(low - 0.5, high + 0.5)
    margin = MARGIN * (high - low)
    return Scale(low - margin, high + margin)


def _round_step(least: float) -> float:
    """Returns the smallest of 1, 2 and 5 times a power of ten that is not below a number."""
    power = 10.0 ** math.floor(math.log10(least))
    for factor in (1, 2, 5):
        if factor * power >= least - 1e-12:
            return factor * power
    return 10 * power
