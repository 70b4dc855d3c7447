"""What the benchmarks share: one printed table, benchmarks/results/NAME.json, and the 28x28 data sets."""

import gzip
import json
from pathlib import Path

import numpy as np

from pipelines.datasets.containers import Images

RESULTS = Path("benchmarks/results")
FOLDERS = {"mnist": "MNIST", "fashion_mnist": "FashionMNIST"}  # as torchvision names them


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
    """Written beside and renamed: a long run that is cut short leaves the last whole table."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    beside = RESULTS / f".{name}.json"
    beside.write_text(json.dumps({**summary, "rows": rows}, indent=1) + "\n")
    beside.rename(RESULTS / f"{name}.json")


def kept(name: str) -> list[dict]:
    """The rows of an earlier run, or none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def train_and_test(dataset: str, folder: Path) -> tuple[Images, Images]:
    """MNIST or Fashion-MNIST from the .gz files in torchvision's layout: 60,000 and 10,000 images."""
    raw = folder / FOLDERS[dataset] / "raw"
    return _images(raw, "train"), _images(raw, "t10k")


def _images(raw: Path, part: str) -> Images:
    images = _idx(raw / f"{part}-images-idx3-ubyte.gz")[..., None]
    labels = _idx(raw / f"{part}-labels-idx1-ubyte.gz").astype(np.int64)
    return Images(images, labels, np.arange(len(labels)))


def _idx(path: Path) -> np.ndarray:
    """uint8, of the shape in the header: byte 3 is the number of axes, then a big-endian int32 for each."""
    content = gzip.decompress(path.read_bytes())
    axes = content[3]
    shape = np.frombuffer(content, ">i4", axes, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape).copy()  # writable, as torch wants it


def _text(value) -> str:
    if isinstance(value, list):
        return " ".join(map(_text, value))
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
