"""Places the few lines of a plot, each with its name at its right end.

Nothing is drawn here. Places are in percent of the plot's width, from the left, and of its height,
from the top. The names are moved apart so that none lies on another.
"""

import itertools
from collections.abc import Mapping

from pipelines.reporting import scale

# More lines than these cannot be told apart.
MOST_LINES = 5
# The part of the width that the lines take; their names stand to the right of it.
LINES_END = 72.0
# The least distance between two names, in percent of the height.
APART = 8.0

# (x, y) of a line.
Point = tuple[float, float]


def plot(
    lines: Mapping[str, list[Point]],
    bands: Mapping[str, list[tuple[float, float, float]]] | None = None,
    x_labels: Mapping[float, str] | None = None,
) -> dict:
    """Returns what a plot of lines shows.

    Args:
        lines: {name: points, from left to right}; the first MOST_LINES are drawn.
        bands: {name: (x, low, high) from left to right}, of lines with an interval.
        x_labels: The numbers on the horizontal axis and their texts; round ones by default.

    Returns:
        {"x_ticks": [{"at", "text"}], "y_ticks": the same, "lines": [{"name", "points", "band",
        "label_at", "last"}]}. "points" and "band" are lists of (x, y), places both.
    """
    drawn = dict(list(lines.items())[:MOST_LINES])
    bands = {name: band for name, band in (bands or {}).items() if name in drawn}
    xs = [x for points in drawn.values() for x, _ in points]
    ys = [y for points in drawn.values() for _, y in points]
    for band in bands.values():
        ys += [end for _, low, high in band for end in (low, high)]
    across = scale.around(xs)
    up = scale.around(ys)
    placed = []
    for name, points in drawn.items():
        band = bands.get(name, [])
        edge = [(x, high) for x, _, high in band] + [(x, low) for x, low, _ in reversed(band)]
        places = _places(points, across, up)
        placed.append(
            {
                "name": name,
                "points": places,
                "band": _places(edge, across, up),
                "label_at": places[-1][1],
                "last": points[-1][1],
            }
        )
    _move_apart(placed)
    labels = x_labels or {tick: f"{tick:g}" for tick in across.ticks()}
    x_ticks = [{"at": _x(x, across), "text": text} for x, text in labels.items()]
    y_ticks = [{"at": _y(y, up), "text": f"{y:g}"} for y in up.ticks()]
    return {"x_ticks": x_ticks, "y_ticks": y_ticks, "lines": placed}


def _places(points: list[Point], across: scale.Scale, up: scale.Scale) -> list[Point]:
    """Returns the places of some points."""
    return [(_x(x, across), _y(y, up)) for x, y in points]


def _x(value: float, across: scale.Scale) -> float:
    """Returns a place from the left; the right part is for the names."""
    return round(across.place(value) * LINES_END / 100, 2)


def _y(value: float, up: scale.Scale) -> float:
    """Returns a place from the top."""
    return round(100 - up.place(value), 2)


def _move_apart(placed: list[dict]) -> None:
    """Moves the names down where they lie on one another, and all of them up where one falls out."""
    by_height = sorted(placed, key=lambda line: line["label_at"])
    for above, below in itertools.pairwise(by_height):
        below["label_at"] = max(below["label_at"], round(above["label_at"] + APART, 2))
    ceiling = 100 - APART / 2
    for line in reversed(by_height):
        line["label_at"] = min(line["label_at"], round(ceiling, 2))
        ceiling = line["label_at"] - APART
