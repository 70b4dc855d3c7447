"""Says from how many labels on a client gains nothing by federating, and draws it.

    python -m benchmarks.crossing          # reads benchmarks/results/personalisation.json; seconds

Beside it stands PPPFL against other starts, all with the recipe `replay`.

A gain is the accuracy of PPPFL's model after the recipe `replay`, less that of training alone by
the same schedule. On everybody's images the class shares of the model that was trained alone are
taken off. Cells are paired by client and seed. An interval is over all cells of one number of labels.
With few seeds it is too narrow where a seed sways all of its clients alike.

A client gains nothing from the least number of labels at which the interval, and that of each
greater number, reaches down to zero. The numbers of labels of federated clients are drawn at their
median.
"""

from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import personalisation, personalisation_cells
from benchmarks.client_draws import USUAL
from benchmarks.common import has, keep, show
from benchmarks.personalisation_cells import ALONE_RECIPE
from pipelines.evaluation import intervals
from pipelines.evaluation.intervals import Interval
from pipelines.reporting import canvas

NAME = "crossing"
PICTURE = Path("docs/images/crossing.png")
SHIPPED = {"regime": USUAL, "start": "pppfl", "recipe": "replay"}
ALONE = {"regime": USUAL, "recipe": ALONE_RECIPE}
PLACES = {"own": "on its own images", "global": "on everybody's images"}
HEIGHT = 3.4


def gains(
    cells: list[dict], dataset: str, labels: str, place: str, rival: dict = ALONE
) -> dict[tuple, float]:
    """Returns {(seed, client): what PPPFL's model is worth more than a rival's}.

    Args:
        cells: of `benchmarks.personalisation`.
        dataset: its name.
        labels: how many labels the clients have.
        place: "own" or "global", the images that are scored.
        rival: what the cells of the rival have; training alone by default.
    """
    key = {"dataset": dataset, "labels": labels}
    theirs = {}
    for cell in cells:
        if has(cell, {**rival, **key}):
            theirs[cell["seed"], cell["client"]] = cell[place]
    differences = {}
    for cell in cells:
        client = (cell["seed"], cell["client"])
        if has(cell, {**SHIPPED, **key}) and client in theirs:
            differences[client] = cell[place] - theirs[client]
    return differences


def rivals(cells: list[dict]) -> list[dict]:
    """Returns PPPFL's accuracy less that of each other start, a row per number of labels."""
    rows = []
    for dataset, labels in product(personalisation.DATASETS, personalisation.LABELS):
        for start in personalisation.STARTS:
            rival = {**SHIPPED, "start": start}
            at_home = gains(cells, dataset, labels, "own", rival)
            if not at_home or start == SHIPPED["start"]:
                continue
            row = {"dataset": dataset, "labels": labels, "start": start, **_counts(at_home)}
            for place in PLACES:
                row |= _figures(place, gains(cells, dataset, labels, place, rival))
            rows.append(row)
    return rows


def table(cells: list[dict]) -> list[dict]:
    """Returns a row per data set and number of labels: both gains with their intervals."""
    rows = []
    for dataset in personalisation.DATASETS:
        for labels in personalisation.LABELS:
            at_home = gains(cells, dataset, labels, "own")
            if not at_home:
                continue
            shipped = {**SHIPPED, "dataset": dataset, "labels": labels}
            sizes = [cell["records"] for cell in cells if has(cell, shipped)]
            row = {"dataset": dataset, "labels": labels, **_counts(at_home)}
            row["median_labels"] = float(np.median(sizes))
            for place in PLACES:
                row |= _figures(place, gains(cells, dataset, labels, place))
            rows.append(row)
    return rows


def _counts(differences: dict[tuple, float]) -> dict[str, int]:
    return {"cells": len(differences), "seeds": len({seed for seed, _ in differences})}


def _figures(place: str, differences: dict[tuple, float]) -> dict[str, float | None]:
    gain = intervals.over_cells(differences, seed=0)
    return {
        f"{place}_gain": gain.value,
        f"{place}_low": gain.low,
        f"{place}_high": gain.high,
        f"{place}_worst": min(differences.values()),
    }


def crossing(rows: list[dict], place: str) -> float | None:
    """Returns the number of labels from which on a client gains nothing; None: it gains throughout.

    Args:
        rows: of one data set, by rising numbers of labels.
        place: "own" or "global".
    """
    crossed = None
    for row in reversed(rows):
        if row[f"{place}_low"] is not None and row[f"{place}_low"] > 0:
            break
        crossed = row["median_labels"]
    return crossed


def picture(rows: list[dict]) -> Figure:
    """Draws both gains against the number of labels, a line per data set with its intervals."""
    drawn = canvas.figure(HEIGHT)
    for axes, (place, words) in zip(drawn.subplots(1, 2, sharey=False), PLACES.items()):
        axes.axhline(0, color=canvas.INK, lw=1)
        for index, dataset in enumerate(personalisation.DATASETS):
            shown = [row for row in rows if row["dataset"] == dataset]
            style = {
                "color": canvas.OF_GENERATORS[index % len(canvas.OF_GENERATORS)],
                "marker": canvas.MARKERS[index % len(canvas.MARKERS)],
                "label": dataset,
            }
            _line(axes, shown, place, style)
        axes.set_xscale("log")
        canvas.label(axes, f"gain {words}", "labels that the client has", "accuracy")
    canvas.legend(drawn, drawn.axes[0].get_legend_handles_labels()[0])
    return drawn


def _line(axes: Axes, rows: list[dict], place: str, style: dict) -> None:
    counts = [row["median_labels"] for row in rows]
    axes.plot(counts, [row[f"{place}_gain"] for row in rows], ms=4, lw=1.4, **style)
    for row in rows:
        interval = Interval(*(row[f"{place}_{name}"] for name in ("gain", "low", "high")))
        if interval.low is not None:
            count = row["median_labels"]
            axes.plot([count, count], [interval.low, interval.high], color=style["color"], lw=1.2)


def main() -> None:
    """Prints and stores the tables, and draws the picture."""
    rows = table(personalisation_cells.stored(personalisation.NAME))
    crossings = {}
    for dataset in personalisation.DATASETS:
        shown = [row for row in rows if row["dataset"] == dataset]
        for place in PLACES:
            crossings[f"{dataset}_{place}"] = crossing(shown, place)
    against = rivals(personalisation_cells.stored(personalisation.NAME))
    show(against)
    show(rows, **crossings)
    keep(NAME, rows, crossings=crossings, rivals=against)
    canvas.save(picture(rows), PICTURE)


if __name__ == "__main__":
    main()
