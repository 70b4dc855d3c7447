"""What every benchmark prints and keeps: one table, and benchmarks/results/NAME.json."""

import json
from pathlib import Path

RESULTS = Path("benchmarks/results")


def publish(name: str, rows: list[dict], **summary) -> None:
    columns = list(rows[0])
    widths = [max(len(column), *(len(_text(row[column])) for row in rows)) for column in columns]
    for line in (columns, *([_text(row[column]) for column in columns] for row in rows)):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)))
    for key, value in summary.items():
        print(f"{key}: {_text(value)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps({**summary, "rows": rows}, indent=1) + "\n")


def _text(value) -> str:
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
