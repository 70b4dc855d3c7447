"""What the benchmarks share: one printed table, and benchmarks/results/NAME.json."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from pipelines.config import Params
from pipelines.datasets import sources
from pipelines.datasets.labelled_images import Images
from pipelines.files import write_text

RESULTS = Path("benchmarks/results")


def publish(name: str, rows: list[dict], *, hidden: tuple[str, ...] = (), **summary) -> None:
    """Prints `rows` as a table without the `hidden` columns, then `summary`; keeps all of it."""
    show(rows, hidden=hidden, **summary)
    keep(name, rows, **summary)


def show(rows: list[dict], *, hidden: tuple[str, ...] = (), **summary) -> None:
    columns = [column for column in rows[0] if column not in hidden]
    widths = [max(len(column), *(len(_text(row[column])) for row in rows)) for column in columns]
    for line in (columns, *([_text(row[column]) for column in columns] for row in rows)):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    for key, value in summary.items():
        print(f"{key}: {_text(value)}")


def keep(name: str, rows: list[dict], **summary) -> None:
    write_text(RESULTS / f"{name}.json", json.dumps({**summary, "rows": rows}, indent=1) + "\n")


def kept(name: str) -> list[dict]:
    """The rows of an earlier run, or none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def cells(
    params: Params, datasets: list[str], seeds: list[int], root: Path
) -> Iterator[tuple[int, str, Images, Images]]:
    """(seed, data set, its training images, its test images): every data set once before any seed twice."""
    for seed in seeds:
        for dataset in datasets:
            profile = params.profiles[dataset]
            public = {"name": profile.source, "classes": profile.classes, "shape": profile.shape}
            yield seed, dataset, *sources.read(dataset, **public, root=root)


def cpu_seconds() -> float:
    """Of this process and of those it has started that have ended: teachers work in processes of their own."""
    return sum(os.times()[:4])


def _text(value) -> str:
    if isinstance(value, list):
        return " ".join(map(_text, value))
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
