"""The report's CSV tables, as lists of rows. `dvc plots` draws them."""

from pipelines.reporting.findings import not_private

METHOD_COLUMNS = (
    "mean_accuracy",
    "mean_accuracy_low",
    "mean_accuracy_high",
    "over_local",
    "over_local_low",
    "over_local_high",
    "worst_accuracy",
    "worst_client",
    "spread_accuracy",
    "mean_macro_f1",
    "mean_accuracy_before",
    "mean_global_before",
    "mean_global_after",
    "epsilon_max",
    "delta",
    "guarantee",
    "upper_bound",
    "rounds",
    "bytes_up",
    "bytes_down",
    "seconds",
    "seconds_at_home",
    "selected_round",
    "selected_accuracy",
    "selected_worst",
    "selected_macro_f1",
    "candidates",
    "collapsed",
    "weak",
)
TEST_SELECTED = {
    "bmta": "bmta_test_selected",
    "bmt_f1": "bmt_f1_test_selected",
}  # the name says what it is
EPSILON_COLUMNS = (
    "epsilon",
    "tstr_accuracy",
    "tstr_accuracy_global",
    "accuracy_before",
    "accuracy_after",
)


def with_rounds(curves: dict[str, list[dict]]) -> dict[str, list[dict]]:
    """The curves of methods with rounds: the others are a single model."""
    return {method: rows for method, rows in curves.items() if rows[-1]["round"] > 0}


def rounds(curves: dict[str, list[dict]], value: str) -> list[dict]:
    """One row per round: `round`, then `value` of each method with rounds; empty where a method skipped it."""
    lines = with_rounds(curves)
    points = [
        (int(row["round"]), method, row[value])
        for method, rows in lines.items()
        for row in rows
        if value in row
    ]
    table = {
        number: {"round": number, **dict.fromkeys(lines)}
        for number in sorted({point[0] for point in points})
    }
    for number, method, figure in points:
        table[number][method] = figure
    return list(table.values())


def epsilon(summary: dict) -> list[dict]:
    """One row per client and generator: what its epsilon bought."""
    return [
        {"dataset": summary["dataset"], "client": client, "generator": generator}
        | {column: release[column] for column in EPSILON_COLUMNS}
        for client, entry in summary["clients"].items()
        for generator, release in entry["generators"].items()
    ]


def new_clients(points: dict[str, dict]) -> list[dict]:
    """One row per number of labels: `labels`, then each method's accuracy and the ends of its interval.

    Args:
        points: new_clients.points.
    """
    lines = {method: line for methods in points.values() for method, line in methods.items()}
    table = {
        count: {"labels": count}
        for count in sorted({count for line in lines.values() for count in line})
    }
    for method, line in lines.items():
        for count, point in line.items():
            ends = {f"{method}_{end}": point[end] for end in ("low", "high")}
            table[count] |= {method: point["accuracy"], **ends}
    return list(table.values())


def methods(summary: dict) -> list[dict]:
    """One row per method."""
    return [
        {"dataset": summary["dataset"], "method": method}
        | {column: entry.get(column) for column in METHOD_COLUMNS}
        | {column: entry[field] for field, column in TEST_SELECTED.items()}
        for method, entry in summary["methods"].items()
    ]


def metrics(summary: dict) -> dict:
    """Returns what `dvc metrics` compares between runs: two figures a method.

    What is not private says so, for it stands among those that are, and so does what has collapsed.
    """
    found = {}
    for name, method in summary["methods"].items():
        mark = "upper_bound_not_private" if method["upper_bound"] else "not_private"
        figures = {field: method[field] for field in ("mean_accuracy", "worst_accuracy")}
        found[name] = figures | ({mark: True} if not_private(method) else {})
        found[name] |= {"collapsed": True} if method["collapsed"] else {}
    return found
