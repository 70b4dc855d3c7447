"""Stores the figures of runs in experiments/results/NAME.json, one line per run."""

import json
from pathlib import Path

from experiments.plans import Run
from pipelines.errors import UserError
from pipelines.files import standard, write_text

RESULTS = Path("experiments/results")
KEY = ("dataset", "seed", "variant")


def kept(store: str) -> list[dict]:
    """Returns the stored runs; none if there is no file.

    Raises:
        UserError: The file cannot be read as runs.
    """
    path = RESULTS / f"{store}.json"
    try:
        return json.loads(path.read_text())["runs"] if path.exists() else []
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"Could not read {path}: {error}. Restore it, or remove it to measure anew."
        ) from None


def found(rows: list[dict], run: Run, settings: dict) -> dict | None:
    """Returns the row of a run if it was measured under the same settings, otherwise None.

    Args:
        rows: The stored runs.
        run: A planned run.
        settings: Its settings, as `parameters.settings` returns them.
    """
    for row in rows:
        if _key(row) == _key(vars(run)) and row["settings"] == settings:
            return row
    return None


def keep(store: str, run: Run, settings: dict, figures: dict) -> None:
    """Stores the figures of a run, in place of the same run under other settings.

    Args:
        store: Name of the store.
        run: The run that was made.
        settings: Its settings, as `parameters.settings` returns them.
        figures: Its figures, as `collect.figures` returns them.
    """
    row = {name: getattr(run, name) for name in KEY}
    row |= {"settings": settings, **standard(figures)}
    # The file is read again, for another command may have written meanwhile.
    rows = [other for other in kept(store) if _key(other) != _key(row)]
    lines = ",\n".join(map(json.dumps, sorted([*rows, row], key=_key)))
    write_text(RESULTS / f"{store}.json", f'{{"runs": [\n{lines}\n]}}\n')


def _key(row: dict) -> tuple:
    """Returns what identifies a run within its store."""
    return tuple(row[name] for name in KEY)
