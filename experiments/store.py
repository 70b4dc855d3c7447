"""Figures kept from run to run, in experiments/results/NAME.json: a line per run."""

import json
from pathlib import Path

from experiments.plans import Run
from pipelines.errors import UserError
from pipelines.files import standard, write_text

RESULTS = Path("experiments/results")
KEY = ("dataset", "seed", "variant")


def kept(store: str) -> list[dict]:
    """
    Raises:
        UserError: the file is not one of these.
    """
    path = RESULTS / f"{store}.json"
    try:
        return json.loads(path.read_text())["runs"] if path.exists() else []
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"Could not read {path}: {error}. Restore it, or remove it to measure anew."
        ) from None


def found(rows: list[dict], run: Run, settings: dict) -> dict | None:
    """The run's row, if it was measured under the same settings."""
    same = (row for row in rows if _key(row) == _key(vars(run)) and row["settings"] == settings)
    return next(same, None)


def keep(store: str, run: Run, settings: dict, figures: dict) -> None:
    """In place of the same run under other settings."""
    row = {**{name: getattr(run, name) for name in KEY}, "settings": settings, **standard(figures)}
    rows = [
        *(other for other in kept(store) if _key(other) != _key(row)),
        row,
    ]  # read anew: others may have written
    lines = ",\n".join(json.dumps(row) for row in sorted(rows, key=_key))
    write_text(RESULTS / f"{store}.json", f'{{"runs": [\n{lines}\n]}}\n')


def _key(row: dict) -> tuple:
    return tuple(row[name] for name in KEY)
