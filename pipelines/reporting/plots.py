"""Draws pictures over methods: accuracy per round, and one bar per method."""

from collections.abc import Iterable, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipelines.reporting import canvas
from pipelines.reporting.findings import marked
from pipelines.reporting.tables import with_rounds

# These methods have no rounds and are drawn as level lines.
REFERENCES = ("local", "random_init")
DOT = {
    "ls": "",
    "marker": "o",
    "ms": 4.5,
    "mfc": "white",
    "mec": canvas.INK,
    "mew": 0.8,
    "zorder": 3,
    "clip_on": False,
}
INTERVAL = {
    "color": canvas.INK,
    "lw": 1.6,
    "solid_capstyle": "butt",
    "zorder": 5,
    "marker": "|",
    "ms": 9,
    "mew": 1.6,
}
WORST = {
    "ls": "",
    "marker": "D",
    "ms": 6,
    "mfc": "black",
    "mec": "white",
    "zorder": 4,
    "clip_on": False,
}
# The x of the text beside a bar, to the right of the axes.
TEXT_AT = 1.03


def rounds(
    curves: dict[str, list[dict]], generators: list[str], methods: Mapping[str, dict]
) -> Figure:
    """Draws accuracy per round, a row of two panels per generator.

    On the left is the shared model on the global test set, on the right the mean over clients
    after local fine-tuning. Methods without a generator stand in every row.

    Args:
        curves: {method: one dict per round}, as `collect.read` returns them.
        generators: The generators of the parameters.
        methods: The methods of the summary.
    """
    figure = canvas.figure(1.2 + 3.1 * len(generators))
    panels = figure.subplots(len(generators), 2, squeeze=False)
    lines_by_name = {}
    for generator, (shared, home) in zip(generators, panels):
        _curves(shared, home, _curves_of(curves, generator), methods)
        for method in REFERENCES:
            if method in curves:
                _level(home, method, curves[method][-1]["accuracy_after"])
        title = f"{generator}: the shared model"
        canvas.label(shared, title, "round", "accuracy on the global test set")
        title = f"{generator}: after fine-tuning at home"
        canvas.label(home, title, "round", "mean accuracy over clients")
        shared.set_ylim(bottom=0)
        lines, names = shared.get_legend_handles_labels()
        lines_by_name |= dict(zip(names, lines))
    canvas.legend(figure, list(lines_by_name.values()))
    return figure


def methods(summary: dict) -> Figure:
    """Draws a bar per method: the mean over clients with its interval.

    Every client is a dot, and the worst one is marked and named. The bar of an upper bound is
    hatched. That of a collapsed model is pale and has no figures.

    Args:
        summary: What `summary.build` returned.
    """
    entries = summary["methods"]
    figure = canvas.figure(1.1 + 0.42 * len(entries))
    axes = figure.subplots()
    for row, (method, entry) in enumerate(entries.items()):
        if entry["collapsed"]:
            _bar(axes, row, entry, color=canvas.FAINT)
            _text(axes, row, "collapsed")
        else:
            hatch = "///" if entry["upper_bound"] else None
            _bar(axes, row, entry, color=canvas.colour(method), alpha=0.75, hatch=hatch)
            _clients(axes, row, method, entry)
    names = [marked(method, entry).replace(" (", "\n(") for method, entry in entries.items()]
    axes.set_yticks(range(len(entries)), names)
    axes.set_xlim(0, 1)
    axes.invert_yaxis()
    title = (
        "Accuracy at home: mean and its 95 % interval (bar), clients (dots), worst client (diamond)"
    )
    canvas.label(axes, title, "accuracy", "")
    axes.grid(visible=False, axis="y")
    return figure


def _curves_of(curves: dict[str, list[dict]], generator: str) -> dict[str, list[dict]]:
    """Returns the curves with rounds of a generator's methods and of those without a generator."""
    chosen = {}
    for method, rows in with_rounds(curves).items():
        if method.partition("/")[2] in ("", generator):
            chosen[method] = rows
    return chosen


def _curves(
    shared: Axes, home: Axes, curves: dict[str, list[dict]], methods: Mapping[str, dict]
) -> None:
    """Draws the methods of one row: the shared model, and the means after fine-tuning."""
    for method, rows in curves.items():
        algorithm = method.partition("/")[0]
        style = {
            "color": canvas.colour(algorithm),
            "lw": 1.8,
            "ls": ":" if methods[method]["upper_bound"] else "-",
            "marker": "o",
            "ms": 3.5,
        }
        name = marked(algorithm, methods[method])
        shared.plot(*_points(rows, "global_accuracy"), label=name, **style)
        home.plot(*_points(rows, "accuracy_after"), **style)


def _points(rows: Iterable[dict], field: str) -> tuple[list[float], list[float]]:
    """Returns rounds and their values, of the rounds that have the field.

    Not every round is fine-tuned.
    """
    numbers = []
    values = []
    for row in rows:
        if field in row:
            numbers.append(row["round"])
            values.append(row[field])
    return numbers, values


def _level(axes: Axes, method: str, value: float) -> None:
    """Draws a method without rounds as a level line with its name."""
    colour = canvas.colour(method)
    axes.axhline(value, color=colour, lw=1.2, ls=(0, (1, 2)), zorder=1)
    place = {
        "xy": (1, value),
        "xycoords": ("axes fraction", "data"),
        "xytext": (-3, 3),
        "textcoords": "offset points",
    }
    axes.annotate(method, ha="right", size=8, color=colour, **place)


def _bar(axes: Axes, row: int, entry: dict, **look: object) -> None:
    """Draws the mean of one method."""
    axes.barh(row, entry["mean_accuracy"], height=0.62, zorder=2, **look)


def _clients(axes: Axes, row: int, method: str, entry: dict) -> None:
    """Draws the interval, the clients and the worst client of one method, and its figures."""
    if entry["mean_accuracy_low"] is not None:
        ends = [entry["mean_accuracy_low"], entry["mean_accuracy_high"]]
        axes.plot(ends, [row, row], label=f"interval of {method}", **INTERVAL)
    accuracies = list(entry["clients"].values())
    axes.plot(accuracies, [row] * len(accuracies), **DOT)
    axes.plot([entry["worst_accuracy"]], [row], **WORST)
    mean = f"{entry['mean_accuracy']:.3f}"
    _text(axes, row, f"{mean}   worst {entry['worst_accuracy']:.3f} ({entry['worst_client']})")


def _text(axes: Axes, row: int, text: str) -> None:
    """Writes a text beside a bar."""
    axes.text(TEXT_AT, row, text, va="center", size=9, color=canvas.INK)
