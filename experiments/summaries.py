"""From kept runs to means and intervals. The unit is a cell: one client in one run (seed)."""

from collections.abc import Mapping

import numpy as np

from pipelines import seeds
from pipelines.evaluation import intervals

Cells = dict[tuple[int, str], float]
LATER = ("global_after",)  # what earlier runs did not keep
SELECTED = ("selected_mean_accuracy", "bmta", "bmt_f1")


def cells(rows: list[dict], method: str, field: str) -> Cells:
    """{(seed, client): value} over the runs that have the method."""
    return {
        (row["seed"], client): entry.get(field) if field in LATER else entry[field]
        for row in rows
        if method in row["methods"]
        for client, entry in row["methods"][method]["clients"].items()
    }


def newcomers_cells(rows: list[dict], algorithm: str, labels: int, field: str) -> Cells:
    """{(seed, client and draw): value} of clients that were held out."""
    return {
        (row["seed"], f"{cell['client']} {cell['draw']}"): cell[field]
        for row in rows
        for cell in row["newcomers"]["cells"]
        if (cell["algorithm"], cell["labels"]) == (algorithm, labels)
    }


def newcomers_costs(rows: list[dict], algorithm: str, field: str) -> float | None:
    """The mean over newcomers and runs of what the shared training cost; None where a run did not keep it."""
    kept = [row["newcomers"].get("costs") for row in rows]
    own = [cost for costs in kept for cost in costs or () if cost["algorithm"] == algorithm]
    return mean([float(cost[field]) for cost in own]) if all(kept) else None


def ahead(one: Cells, other: Cells) -> str:
    """Of how many newcomers a method is better on average over draws: `2/3`. One that is level is not ahead."""
    found = {}
    for seed, drawn in one.keys() & other.keys():
        found.setdefault((seed, drawn.partition(" ")[0]), []).append(
            one[seed, drawn] - other[seed, drawn]
        )
    return f"{sum(sum(differences) > intervals.ROUNDING for differences in found.values())}/{len(found)}"


def mean(values: Mapping | list) -> float | None:
    """None where a run knows no figure."""
    numbers = list(values.values()) if isinstance(values, Mapping) else list(values)
    return float(np.mean(numbers)) if numbers and None not in numbers else None


def over_clients(values: Cells) -> dict[str, float]:
    """{"worst", "spread": standard deviation} over a run's clients, as the mean over runs."""
    runs = [
        [value for (seed, _), value in values.items() if seed == one]
        for one in {seed for seed, _ in values}
    ]
    return {
        "worst": mean([min(run) for run in runs]),
        "spread": mean([float(np.std(run)) for run in runs]),
    }


def accuracies_in_both(rows: list[dict], one: str, other: str) -> tuple[list[float], list[float]]:
    """Of two methods, cell by cell, as far as both have it."""
    first, second = (cells(rows, method, "accuracy") for method in (one, other))
    both = sorted(first.keys() & second.keys())
    return [first[cell] for cell in both], [second[cell] for cell in both]


def over_runs(rows: list[dict], method: str, field: str) -> float | None:
    """The mean over runs of what a method has once in each."""
    values = [row["methods"][method][field] for row in rows if method in row["methods"]]
    return mean(
        [None if value is None else float(value) for value in values]
    )  # "inf" is how JSON holds it


def selected(rows: list[dict], method: str) -> dict:
    """What rounds were selected for, the name saying so where on test data; None where one round alone was scored, so
    that there was nothing to select from."""
    several = all(
        row["methods"][method]["candidates"] > 1 for row in rows if method in row["methods"]
    )
    names = (f"{field}_test_selected" if field.startswith("bmt") else field for field in SELECTED)
    return {
        name: over_runs(rows, method, field) if several else None
        for name, field in zip(names, SELECTED)
    }


def paired(one: Cells, other: Cells, *names: str) -> intervals.Interval | None:
    """The mean difference over the cells that both have, with its interval; None without any. names: seed the
    bootstrap."""
    both = sorted(one.keys() & other.keys())
    if not both:
        return None
    differences = {
        cell: round(one[cell] - other[cell], 12) for cell in both
    }  # equal ones differ in the last bits
    return intervals.over_cells(differences, seed=seeds.derive(0, *names))


def by_seed(one: Cells, other: Cells) -> str:
    """The mean difference in each seed: cells of one share their partition and noise, seeds share nothing."""
    found = {}
    for cell in sorted(one.keys() & other.keys()):
        found.setdefault(cell[0], []).append(one[cell] - other[cell])
    return ", ".join(f"{np.mean(differences):+.3f}" for differences in found.values())


def ends(name: str, interval: intervals.Interval | None) -> dict:
    """As columns; empty where nothing is compared."""
    value, low, high = interval or (None, None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def by(rows: list[dict], field: str) -> dict[str, list[dict]]:
    """In the order in which its values first come."""
    found = {}
    for row in rows:
        found.setdefault(row[field], []).append(row)
    return found


def methods(rows: list[dict]) -> dict[str, dict]:
    """{method: an entry of it}, an algorithm's generators beside each other."""
    entries = {method: entry for row in reversed(rows) for method, entry in row["methods"].items()}
    names = list(
        dict.fromkeys(method.partition("/")[0] for row in rows for method in row["methods"])
    )
    order = sorted(entries, key=lambda method: (names.index(method.partition("/")[0]), method))
    return {method: entries[method] for method in order}


def generators(rows: list[dict], method: str = "pppfl") -> list[str]:
    """Those that the method ran on."""
    names = {
        name.partition("/")[2]
        for row in rows
        for name in row["methods"]
        if name.startswith(f"{method}/")
    }
    return sorted(names)
