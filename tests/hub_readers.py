"""Reads exports' folders with the tools that they are made for, in an environment of their own.

`.venv/readers/bin/python tests/hub_readers.py OUT FOLDER ..` writes into OUT what they read. It
imports nothing of ours: `datasets`, `huggingface_hub` and `mlcroissant` are the oracles. Of the
first folder it writes

    0/rows.npz       images and labels by `datasets.load_dataset`
    0/records.npz    the same by `mlcroissant`
    0/read.json      the classes' names, the front matter, and what `mlcroissant` complains of
"""

import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

PYTHON = Path(sys.executable).parent / "../readers/bin/python"


def missing() -> str:
    """Returns why the tools cannot be used here; "" if they can."""
    if not PYTHON.exists():
        return "the readers' environment is not there: `make readers` makes it"
    done = subprocess.run(
        [PYTHON, "-c", "import datasets, huggingface_hub, mlcroissant"],
        capture_output=True,
        text=True,
    )
    return f"the readers do not import: {done.stderr[-300:]}" if done.returncode else ""


class Read(NamedTuple):
    """Holds what the tools read in a folder."""

    rows: dict[str, np.ndarray]
    records: dict[str, np.ndarray]
    told: dict


def read(*folders: Path) -> list[Read]:
    """Returns what the tools read in folders, in a process that they keep from any network."""
    with tempfile.TemporaryDirectory() as place:
        offline = dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"), "1")
        done = subprocess.run(
            [PYTHON, __file__, place, *folders],
            capture_output=True,
            text=True,
            env={**os.environ, **offline, "HF_HOME": f"{place}/hub", "HOME": place},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        # `datasets` leaves out what it cannot read of a card, and goes on
        assert "Ignoring" not in done.stderr, done.stderr
        found = []
        for number in range(len(folders)):
            out = Path(place) / str(number)
            arrays = [dict(np.load(out / name)) for name in ("rows.npz", "records.npz")]
            found.append(Read(*arrays, json.loads((out / "read.json").read_text())))
        return found


def _rows(folder: str, out: Path) -> dict:
    from datasets import load_dataset

    table = load_dataset(folder, split="train")
    images = np.stack([np.asarray(row["image"]) for row in table])
    np.savez(out / "rows.npz", images=images, labels=np.array(table["label"]))
    features = {name: type(feature).__name__ for name, feature in table.features.items()}
    return {"class_names": table.features["label"].names, "features": features}


def _card(folder: str) -> dict:
    from huggingface_hub import DatasetCard

    return DatasetCard.load(f"{folder}/README.md").data.to_dict()


def _records(folder: str, out: Path) -> dict:
    import mlcroissant

    described = mlcroissant.Dataset(jsonld=f"{folder}/croissant.json")
    issues = described.metadata.ctx.issues
    records = list(described.records("images"))
    images = [_pixels(record["images/image"]) for record in records]
    labels = [record["images/label"] for record in records]
    np.savez(out / "records.npz", images=np.stack(images), labels=np.array(labels))
    classes = {}
    for record in described.records("classes"):
        classes[int(record["classes/label"])] = _text(record["classes/name"])
    return {
        "errors": sorted(issues.errors),
        "warnings": sorted(issues.warnings),
        "classes": [classes[label] for label in range(len(classes))],
        "licence": described.metadata.license,
    }


def _pixels(image: object) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(image)) if isinstance(image, bytes) else image)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    for number, folder in enumerate(sys.argv[2:]):
        out = Path(sys.argv[1]) / str(number)
        out.mkdir()
        told = {"dataset": _rows(folder, out), "card": _card(folder)}
        told["croissant"] = _records(folder, out)
        (out / "read.json").write_text(json.dumps(told))
