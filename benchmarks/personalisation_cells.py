"""Stores the cells of `benchmarks.personalisation`, and sums them up as its table.

A cell is one client with one number of labels, one start and one recipe, in one draw.
"""

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.common import RESULTS, keep, without
from pipelines.paths import SCRATCH

COLUMNS = ("regime", "dataset", "labels", "start", "recipe")
KEY = (*COLUMNS, "seed", "client")
# The recipe that all others are compared with.
ALONE_RECIPE = "alone"


def summary(cells: list[dict]) -> list[dict]:
    """Returns the table: means over clients and seeds, and paired differences to training alone."""
    alone = {_client(cell): cell for cell in cells if cell["recipe"] == ALONE_RECIPE}
    rows = []
    for way in dict.fromkeys(_way(cell) for cell in cells):
        group = [cell for cell in cells if _way(cell) == way]
        row = {
            **dict(zip(COLUMNS, way)),
            "own": float(np.mean([cell["own"] for cell in group])),
            "global": float(np.mean([cell["global"] for cell in group])),
            "own_spread": _spread(group, "own"),
            "global_spread": _spread(group, "global"),
            "seeds": len({cell["seed"] for cell in group}),
            "cells": len(group),
        }
        rows.append({**row, **_less_local(group, alone)})
    return rows


def _spread(group: list[dict], figure: str) -> float | None:
    """Returns the standard deviation of the seeds' means; None of fewer than two seeds."""
    means = {}
    for cell in group:
        means.setdefault(cell["seed"], []).append(cell[figure])
    if len(means) < 2:
        return None
    return float(np.std([np.mean(values) for values in means.values()], ddof=1))


def _less_local(group: list[dict], alone: dict[tuple, dict]) -> dict[str, float | None]:
    """Returns the paired differences to training alone; None where nobody can train, without labels.

    Beside them stands in how many cells the difference is above zero.
    """
    figures = {}
    for figure, name in (("own", "own_less_local"), ("global", "global_less_local_prior_off")):
        differences = []
        for cell in group:
            if _client(cell) in alone:
                differences.append(cell[figure] - alone[_client(cell)][figure])
        figures[name] = float(np.mean(differences)) if differences else None
        figures[f"worst_{name}"] = min(differences, default=None)
        figures[f"{figure}_cells_above"] = sum(difference > 0 for difference in differences)
    return figures


def _way(cell: dict) -> tuple:
    """Returns what a row of the table is about."""
    return tuple(cell[column] for column in COLUMNS)


def _client(cell: dict) -> tuple:
    """Returns what two cells must share to be compared."""
    return tuple(cell[column] for column in ("regime", "dataset", "seed", "client", "labels"))


def add(name: str, cell: dict) -> None:
    """Stores a cell in place of an older one of the same key. Several calls may run at once."""
    with _locked(name):
        cells = without(stored(name), {column: cell[column] for column in KEY})
        cells.append(cell)
        keep(name, summary(cells), cells=cells)


def retain(name: str, stays: Callable[[dict], bool]) -> None:
    """Drops the cells that were measured under other settings: a row would mix both.

    Args:
        name: of the benchmark.
        stays: tells of a cell whether it stays.
    """
    with _locked(name):
        cells = stored(name)
        current = [cell for cell in cells if stays(cell)]
        if current != cells:
            keep(name, summary(current), cells=current)


@contextmanager
def _locked(name: str) -> Iterator[None]:
    SCRATCH.mkdir(exist_ok=True)
    with open(SCRATCH / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def stored(name: str) -> list[dict]:
    """Returns the cells of earlier calls."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text())["cells"] if path.exists() else []
