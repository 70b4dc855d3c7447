"""Reads and writes files. Outputs appear whole or not at all; a bad one is named in a sentence."""

import csv
import hashlib
import io
import json
import math
import os
import tempfile
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
    """Yields an empty folder, which becomes `path` when the block ends well.

    When the block fails, the folder vanishes. It is filled inside `.scratch`, which Git ignores.
    So a killed run leaves nothing beside the outputs, where a folder dependency of DVC or a
    `git add -A` would find it. The next new folder removes what it left there (scratch.py).

    >>> with new_folder(Path("out")) as folder:
    ...     write_json(folder / "privacy.json", {"epsilon": float("inf")})
    >>> read_json(Path("out/privacy.json"))
    {'epsilon': 'inf'}

    Raises:
        UserError: The folder cannot be written. Nothing was left half-written.
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
    """Renames `new` to `path`; a folder that was at `path` before stays when that fails.

    That folder moves beside `new`, into `.scratch`, and vanishes with it. A run that is killed
    between the two renames leaves no output, and the stage makes it again. It leaves nothing beside
    the outputs, and no half-removed folder.
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
    """Writes named arrays as safetensors.

    The bytes are written here, so that a full disk is an OSError and not an error of safetensors.
    """
    path.write_bytes(arrays_as_bytes(arrays))


def arrays_as_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    """Returns the content of a safetensors file."""
    return serialised({name: np.asarray(array, order="C") for name, array in arrays.items()})


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Returns the named arrays of a safetensors file.

    Raises:
        UserError: The file is absent or damaged.
    """
    try:
        return load_file(path)
    # safetensors raises its own untyped errors
    except Exception as error:
        raise UserError(f"Could not read {path}: {error}. {AGAIN}") from error


def write_json(path: Path, content: dict) -> None:
    """Writes standard JSON: an infinite number as the string "inf", an undefined one as null."""
    path.write_text(json.dumps(standard(content), indent=1) + "\n")


def read_json(path: Path) -> dict:
    """Returns the mapping that a JSON file holds.

    Raises:
        UserError: The file is absent or damaged, or holds something else than a mapping.
    """
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"Could not read {path}: {error}. {AGAIN}") from error
    require(path, content)
    return content


def require(path: Path, content: object, *fields: str) -> None:
    """Checks that the content of a file is a mapping with certain fields.

    Args:
        path: The file, for the message.
        content: What it holds.
        *fields: The names that must be in it.

    Raises:
        UserError: `content` is no mapping, or lacks one of the `fields`.
    """
    if not isinstance(content, dict):
        lacking = ", ".join(map(repr, fields)) or "a mapping"
        raise UserError(f"{path} lacks {lacking}. {AGAIN}")
    lacking = [field for field in fields if field not in content]
    if lacking:
        raise UserError(f"{path} lacks {', '.join(map(repr, lacking))}. {AGAIN}")


def write_text(path: Path, text: str) -> None:
    """Writes a file beside its place and renames it.

    A long run that is cut short leaves the last whole file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}")
    beside.write_text(text)
    beside.rename(path)


def write_cache(path: Path, content: bytes) -> None:
    """Writes a file that can be made again, for this user alone.

    The file appears whole. Of two writers at once the last one wins.

    Raises:
        UserError: The file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, beside = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(beside, path)
    except OSError as error:
        raise UserError(f"Could not write {path}: {error.strerror or error}.") from error


def write_csv(path: Path, rows: list[dict]) -> None:
    """Writes one line per row, with columns in the order in which they first appear.

    A missing cell is empty.
    """
    columns = {}
    for row in rows:
        columns |= dict.fromkeys(row)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict]:
    """Returns one mapping per line, from column to text.

    Raises:
        UserError: The file is absent or damaged, or was cut within a line.
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
    """Returns the SHA-256 of a file's bytes, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def standard(value: object) -> object:
    """Returns a value as standard JSON can hold it, so that it is read as it was written.

    An infinite number becomes the string "inf", an undefined one None, a tuple a list.

    >>> standard({"epsilon": float("inf"), "shape": (28, 28), "accuracy": float("nan")})
    {'epsilon': 'inf', 'shape': [28, 28], 'accuracy': None}
    """
    if isinstance(value, dict):
        return {key: standard(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [standard(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    if isinstance(value, float) and math.isnan(value):
        return None
    return value
