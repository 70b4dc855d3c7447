"""Places what a dot plot shows: a row per name, its figure as a dot, its interval as a line.

The page draws it as a table, so that it can be read aloud and copied: the SVG of a row stands beside
its figure in words. Nothing is drawn here. All places are in percent of the axis (`scale`).
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from pipelines.reporting import scale
from pipelines.reporting.formatting import number

# numbers in words on an axis
MOST_TEXTS = 3


class Figure(NamedTuple):
    """Holds one figure with the ends of its line.

    Attributes:
        value: The figure, or None if there is none.
        low: The low end of its interval or range, or None.
        high: The high end.
        is_range: Whether the line is a range over clients, and no interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    is_range: bool = False


def column(figures: Iterable[Figure], form: str = "+.3f", zero: bool = True) -> dict:
    """Returns one column of a dot plot: its axis, and what stands in each row.

    Args:
        figures: One for each row.
        form: Format specification of the figures in words.
        zero: Whether the axis has a zero line.

    Returns:
        {"zero": place of 0 or None, "ticks": [{"at", "text"}], "marks": one dict for each row}. A
        mark has "at", "low", "high": places or None, "text": the figure in words, "ends": the ends
        in words, and "is_range".

    Example:
        >>> drawn = column([Figure(0.5, 0.0, 1.0), Figure(None)])
        >>> drawn["marks"][0]["at"], drawn["marks"][0]["text"], drawn["marks"][1]["at"]
        (50.0, '+0.500', None)
    """
    rows = list(figures)
    shown = [0.0] if zero else []
    for figure in rows:
        shown += [end for end in figure[:3] if end is not None]
    axis = scale.around(shown)
    ticks = []
    numbers = axis.ticks()
    # more numbers than these touch each other in a narrow column
    every = math.ceil(len(numbers) / MOST_TEXTS)
    origin = numbers.index(0.0) if 0.0 in numbers else 0
    for place, tick in enumerate(numbers):
        text = "0" if tick == 0 else format(tick, "+g" if zero else "g")
        is_told = (place - origin) % every == 0
        ticks.append({"at": axis.place(tick), "text": text if is_told else ""})
    marks = [_mark(figure, axis, form) for figure in rows]
    return {"zero": axis.place(0.0) if zero else None, "ticks": ticks, "marks": marks}


def _mark(figure: Figure, axis: scale.Scale, form: str) -> dict:
    """Returns the places and the words of one figure."""
    has_line = figure.low is not None
    ends = ""
    if has_line:
        ends = f"{number(figure.low, form)} to {number(figure.high, form)}"
    return {
        "at": None if figure.value is None else axis.place(figure.value),
        "low": axis.place(figure.low) if has_line else None,
        "high": axis.place(figure.high) if has_line else None,
        "text": number(figure.value, form),
        "ends": ends,
        "is_range": figure.is_range,
    }
