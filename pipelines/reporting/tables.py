"""The report's CSV tables, as lists of rows. `dvc plots` draws them."""

from pipelines.evaluation.metrics import METRICS, other_metrics
from pipelines.reporting.findings import not_private

EPSILON_COLUMNS = (
    "epsilon",
    "tstr_accuracy",
    "tstr_accuracy_global",
    "accuracy_before",
    "accuracy_after",
    "trust",
)


def method_columns() -> list[str]:
    """Returns the columns of a method's row, in order, all fields of the summary."""
    columns = ["mean_accuracy", "mean_accuracy_low", "mean_accuracy_high"]
    columns += ["over_local", "over_local_low", "over_local_high"]
    columns += ["worst_accuracy", "worst_client", "spread_accuracy"]
    for metric in other_metrics():
        columns.append(f"mean_{metric.name}")
    columns += ["mean_accuracy_before", "mean_global_before", "mean_global_after"]
    columns += ["epsilon_max", "delta", "guarantee", "upper_bound"]
    columns += ["rounds", "bytes_up", "bytes_down", "seconds", "seconds_at_home"]
    columns += ["selected_round", "selected_accuracy", "selected_worst"]
    for metric in other_metrics():
        columns.append(f"selected_{metric.name}")
    return [*columns, "candidates", "collapsed", "weak"]


def with_rounds(curves: dict[str, list[dict]]) -> dict[str, list[dict]]:
    """Returns the curves of methods with rounds: the others are a single model."""
    return {method: rows for method, rows in curves.items() if rows[-1]["round"] > 0}


def rounds(curves: dict[str, list[dict]], value: str) -> list[dict]:
    """Returns one row per round in which any method has the value.

    Args:
        curves: {method: one dict per round}, as `collect.read` returns them.
        value: The field to tabulate.

    Returns:
        Rows of `round`, then the value of each method with rounds; None if a method skipped it.

    Example:
        >>> curves = {"fedavg": [{"round": 0, "value": 0.1}, {"round": 2, "value": 0.4}]}
        >>> curves["pppfl"] = [{"round": 0, "value": 0.2}, {"round": 1, "value": 0.3}]
        >>> for row in rounds(curves, "value"):
        ...     print(row)
        {'round': 0, 'fedavg': 0.1, 'pppfl': 0.2}
        {'round': 1, 'fedavg': None, 'pppfl': 0.3}
        {'round': 2, 'fedavg': 0.4, 'pppfl': None}
    """
    lines = with_rounds(curves)
    table = {}
    for method, rows in lines.items():
        for row in rows:
            if value in row:
                number = int(row["round"])
                table.setdefault(number, {"round": number, **dict.fromkeys(lines)})
                table[number][method] = row[value]
    return [table[number] for number in sorted(table)]


def epsilon(summary: dict) -> list[dict]:
    """Returns one row per client and generator: what its epsilon bought."""
    rows = []
    for client, facts in summary["clients"].items():
        for generator, release in facts["generators"].items():
            row = {"dataset": summary["dataset"], "client": client, "generator": generator}
            for column in EPSILON_COLUMNS:
                row[column] = release[column]
            rows.append(row)
    return rows


def new_clients(points: dict[str, dict]) -> list[dict]:
    """Returns one row per number of labels: each method's accuracy and the ends of its interval.

    Args:
        points: What `new_clients.points` returned.
    """
    table = {}
    for methods in points.values():
        for method, line in methods.items():
            for count, point in line.items():
                row = table.setdefault(count, {"labels": count})
                row[method] = point["accuracy"]
                row[f"{method}_low"] = point["low"]
                row[f"{method}_high"] = point["high"]
    return [table[count] for count in sorted(table)]


def methods(summary: dict) -> list[dict]:
    """Returns one row per method. A column of figures selected on test data says so."""
    rows = []
    for method, figures in summary["methods"].items():
        row = {"dataset": summary["dataset"], "method": method}
        for column in method_columns():
            row[column] = figures.get(column)
        for metric in METRICS:
            row[f"{metric.best_key}_test_selected"] = figures[metric.best_key]
        rows.append(row)
    return rows


def metrics(summary: dict) -> dict:
    """Returns what `dvc metrics` compares between runs: two figures a method.

    What is not private says so, for it stands among those that are, and so does what has collapsed.
    """
    figures = {}
    for name, method in summary["methods"].items():
        figures[name] = {"mean_accuracy": method["mean_accuracy"]}
        figures[name]["worst_accuracy"] = method["worst_accuracy"]
        if not_private(method):
            mark = "upper_bound_not_private" if method["upper_bound"] else "not_private"
            figures[name][mark] = True
        if method["collapsed"]:
            figures[name]["collapsed"] = True
    return figures
