"""Reading and writing: outputs appear whole or not at all, and a bad file is named in one sentence."""

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from safetensors.numpy import save as serialised

from pipelines import scratch
from pipelines.errors import UserError

AGAIN = "Run the stage that makes it again; after a crash, `make recover` first."


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yields an empty folder that becomes `path` when the block ends well, and vanishes when it does not.

    It is filled inside `.scratch`, which Git ignores: a killed run leaves nothing beside the outputs, where a folder
    dependency of DVC or a `git add -A` would find it, and the next new folder removes what it left there (scratch.py).
    """
    try:
        with scratch.folder(path.name) as partial:
            yield partial
            path.parent.mkdir(parents=True, exist_ok=True)
            _put_in_place(partial, path)
    except OSError as error:
        raise UserError(
            f"Could not write {path}: {error.strerror or error}. Nothing was left half-written."
        ) from error


def _put_in_place(new: Path, path: Path) -> None:
    """Renames `new` to `path`; a folder that was there before stays when that fails.

    That folder moves beside `new`, into `.scratch`, and vanishes with it. A run that is killed between the two renames
    leaves no output, and the stage makes it again; it leaves nothing beside the outputs, and no half-removed folder.
    """
    old = new.with_name("old")
    if path.exists():
        os.replace(path, old)
    try:
        os.replace(new, path)
    except OSError:
        if old.exists():
            os.replace(old, path)
        raise


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """safetensors. Written by us, so that a full disk is an OSError and not one of its own."""
    path.write_bytes(
        serialised({name: np.asarray(array, order="C") for name, array in arrays.items()})
    )


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        return load_file(path)
    except Exception as error:  # safetensors raises its own untyped errors
        raise UserError(f"Could not read {path}: {error}. {AGAIN}") from error


def write_json(path: Path, content: dict) -> None:
    """Standard JSON: an infinite number is written as the string "inf", an undefined one as null."""
    path.write_text(json.dumps(standard(content), indent=1) + "\n")


def read_json(path: Path) -> dict:
    """
    Raises:
        UserError: the file is absent or damaged, or holds something else than a mapping.
    """
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"Could not read {path}: {error}. {AGAIN}") from error
    require(path, content)
    return content


def require(path: Path, content: object, *fields: str) -> None:
    """
    Raises:
        UserError: `content`, of the file `path`, is no mapping or lacks one of the `fields`.
    """
    if not isinstance(content, dict):
        lacking = ", ".join(map(repr, fields)) or "a mapping"
        raise UserError(f"{path} lacks {lacking}. {AGAIN}")
    lacking = [field for field in fields if field not in content]
    if lacking:
        raise UserError(f"{path} lacks {', '.join(map(repr, lacking))}. {AGAIN}")


def write_text(path: Path, text: str) -> None:
    """Written beside and renamed: a long run that is cut short leaves the last whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}")
    beside.write_text(text)
    beside.rename(path)


def write_csv(path: Path, rows: list[dict]) -> None:
    """One line per row, columns in the order in which they first appear; a missing cell is empty."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict]:
    """
    Raises:
        UserError: the file is absent or damaged, or was cut within a line.
    """
    try:
        with path.open(newline="") as file:
            text = file.read()
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"Could not read {path}: {error}. {AGAIN}") from error
    if not text.endswith("\n") or any(None in row or None in row.values() for row in rows):
        raise UserError(f"Could not read {path}: a line of it is cut. {AGAIN}")
    return rows


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def standard(value):
    """What standard JSON can hold, and gives back as it was put in: see `write_json`."""
    if isinstance(value, dict):
        return {key: standard(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [standard(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    if isinstance(value, float) and math.isnan(value):
        return None
    return value
