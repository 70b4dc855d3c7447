"""Holds what the benchmarks share: one printed table, and benchmarks/results/NAME.json."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipelines.config import Params
from pipelines.datasets import partitions, sources
from pipelines.datasets.labelled_images import Images
from pipelines.files import standard, write_text

RESULTS = Path("benchmarks/results")


class Copy(NamedTuple):
    """Says how many images a copy of a public data set has, and how many official ones it lacks.

    Attributes:
        train: The number of its training images.
        test: The number of its test images.
        missing: The number of official images that it lacks, of both parts.
    """

    train: int
    test: int
    missing: int


# what was measured of CIFAR-10: 155 training and 34 test images could only be had as lossy JPEG
CIFAR10 = Copy(train=50_000 - 155, test=10_000 - 34, missing=155 + 34)


def with_network(params: Params, dataset: str, network: str) -> Params:
    """Returns parameters where the profile of a data set has another network."""
    profile = params.profiles[dataset].model_copy(update={"classifier": network})
    return params.model_copy(update={"profiles": {**params.profiles, dataset: profile}})


def publish(name: str, rows: list[dict], *, hidden: tuple[str, ...] = (), **summary) -> None:
    """Prints the results of a benchmark and stores them.

    Args:
        name: Name of the benchmark.
        rows: One dict per line of the table, all with the same keys.
        hidden: Columns that are stored and not printed.
        **summary: Figures of the whole benchmark, printed below the table.
    """
    show(rows, hidden=hidden, **summary)
    keep(name, rows, **summary)


def show(rows: list[dict], *, hidden: tuple[str, ...] = (), **summary) -> None:
    """Prints the results of a benchmark.

    Args:
        rows: One dict per line of the table, all with the same keys.
        hidden: Columns that are not printed.
        **summary: Figures of the whole benchmark, printed below the table.
    """
    columns = [column for column in rows[0] if column not in hidden]
    lines = [columns]
    for row in rows:
        lines.append([_text(row[column]) for column in columns])
    widths = [0] * len(columns)
    for line in lines:
        widths = list(map(max, widths, map(len, line)))
    for line in lines:
        print("  ".join(map(str.ljust, line, widths)).rstrip())
    for key, value in summary.items():
        print(f"{key}: {_text(value)}")


def keep(name: str, rows: list[dict], **summary) -> None:
    """Stores the rows and the summary of a benchmark, in place of earlier ones. A row is a line."""
    parts = []
    for key, value in {**summary, "rows": rows}.items():
        text = json.dumps(value)
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
        parts.append(f"{json.dumps(key)}: {text}")
    write_text(RESULTS / f"{name}.json", "{\n" + ",\n".join(parts) + "\n}\n")


def kept(name: str) -> list[dict]:
    """Returns the stored rows of a benchmark; none if it never ran."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def has(row: dict, key: dict) -> bool:
    """Returns whether a row has all items of a key."""
    return key.items() <= row.items()


def digest(blocks: list) -> str:
    """Returns a short name of settings, which are numbers, texts, and lists and dicts of them."""
    return hashlib.sha256(json.dumps(standard(blocks)).encode()).hexdigest()[:12]


def has_draw(name: str, key: dict, seed: int) -> bool:
    """Returns whether a benchmark's rows with a key have cells of a draw.

    Args:
        name: Name of the benchmark, whose rows have `cells`.
        key: Items of the rows, the digest of their settings among them.
        seed: Of the draw.
    """
    cells_of_key = []
    for row in kept(name):
        if has(row, key):
            cells_of_key += row["cells"]
    return any(cell["seed"] == seed for cell in cells_of_key)


def with_other_draws(rows: list[dict], key: dict, new_cells: list[dict]) -> list[dict]:
    """Returns new cells, and the stored ones of other draws.

    Args:
        rows: The stored rows, which have `cells`.
        key: Items of the row that the cells belong to.
        new_cells: Cells of one draw.
    """
    new_seeds = {cell["seed"] for cell in new_cells}
    together = list(new_cells)
    for row in rows:
        if has(row, key):
            together += [cell for cell in row["cells"] if cell["seed"] not in new_seeds]
    return together


def without(rows: list[dict], key: dict) -> list[dict]:
    """Returns the rows that have not all items of a key."""
    return [row for row in rows if not has(row, key)]


def cells(
    params: Params, datasets: list[str], seeds: list[int], root: Path
) -> Iterator[tuple[int, str, Images, Images]]:
    """Yields (seed, data set, its training images, its test images).

    Every data set comes once before any seed comes twice.

    Args:
        params: The parameters of params.yaml.
        datasets: Names of data sets.
        seeds: Seeds of the runs.
        root: Folder of the raw files.
    """
    for seed in seeds:
        for dataset in datasets:
            train, test = read(params, dataset, root)
            yield seed, dataset, train, test


def read(params: Params, dataset: str, root: Path) -> tuple[Images, Images | None]:
    """Returns the training and test images of a data set; None if it has no test images.

    Args:
        params: The parameters of params.yaml.
        dataset: Name of the data set.
        root: Folder of the raw files.
    """
    profile = params.profiles[dataset]
    return sources.read(
        dataset, name=profile.source, classes=profile.classes, shape=profile.shape, root=root
    )


def split(images: Images, fraction: float, rng: np.random.Generator) -> tuple[Images, Images]:
    """Splits images by label into a fraction of them, and the rest.

    Args:
        images: The images.
        fraction: Share of the first part.
        rng: Draws which image goes where.
    """
    first_rows, other_rows = partitions.split(images.labels, [fraction], rng)
    return images[first_rows], images[other_rows]


def cpu_seconds() -> float:
    """Returns the CPU-seconds of this process and of its child processes that have ended.

    Teachers work in processes of their own.
    """
    return sum(os.times()[:4])


def _text(value: object) -> str:
    """Returns a value as a cell of the table."""
    if isinstance(value, list):
        return " ".join(map(_text, value))
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
