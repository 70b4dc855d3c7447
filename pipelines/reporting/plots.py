"""Pictures over methods: accuracy per round, and a bar for each."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from pipelines.reporting import canvas
from pipelines.reporting.findings import marked
from pipelines.reporting.tables import with_rounds

REFERENCES = ("local", "random_init")  # no rounds: drawn as level lines
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
INTERVAL = {"color": canvas.INK, "lw": 1.6, "solid_capstyle": "butt", "zorder": 5}
WORST = {
    "ls": "",
    "marker": "D",
    "ms": 6,
    "mfc": "black",
    "mec": "white",
    "zorder": 4,
    "clip_on": False,
}


def rounds(
    curves: dict[str, list[dict]], generators: list[str], methods: Mapping[str, dict]
) -> Figure:
    """Accuracy per round, a row of two panels per generator: the shared model on the global test set, and after
    fine-tuning at home. Methods without a generator stand in every row. methods: of the summary."""
    figure = canvas.figure(1.2 + 3.1 * len(generators))
    panels = figure.subplots(len(generators), 2, squeeze=False)
    for generator, (shared, home) in zip(generators, panels):
        for method, rows in with_rounds(curves).items():
            algorithm, _, own = method.partition("/")
            if own in ("", generator):
                style = _line(algorithm, methods[method]["upper_bound"])
                shared.plot(
                    *_points(rows, "global_accuracy"),
                    label=marked(algorithm, methods[method]),
                    **style,
                )
                home.plot(*_points(rows, "accuracy_after"), **style)
        for method in [name for name in REFERENCES if name in curves]:
            _level(home, method, curves[method][-1]["accuracy_after"])
        canvas.label(
            shared, f"{generator}: the shared model", "round", "accuracy on the global test set"
        )
        canvas.label(
            home, f"{generator}: after fine-tuning at home", "round", "mean accuracy over clients"
        )
        shared.set_ylim(bottom=0)
    named = {
        name: line
        for shared, _ in panels
        for line, name in zip(*shared.get_legend_handles_labels())
    }
    canvas.legend(figure, list(named.values()))
    return figure


def methods(summary: dict) -> Figure:
    """A bar per method: mean over clients with its interval, every client a dot, the worst one marked and named.

    The bar of an upper bound is hatched. A collapsed model's is pale, without figures.
    """
    entries = summary["methods"]
    figure = canvas.figure(1.1 + 0.42 * len(entries))
    axes = figure.subplots()
    for row, (method, entry) in enumerate(entries.items()):
        look = {
            "color": canvas.colour(method),
            "alpha": 0.75,
            "hatch": "///" if entry["upper_bound"] else None,
        }
        if entry["collapsed"]:
            axes.barh(row, entry["mean_accuracy"], height=0.62, zorder=2, color=canvas.FAINT)
            axes.text(1.03, row, "collapsed", va="center", size=9, color=canvas.INK)
            continue
        axes.barh(row, entry["mean_accuracy"], height=0.62, zorder=2, **look)
        if entry["mean_accuracy_low"] is not None:
            ends = [entry["mean_accuracy_low"], entry["mean_accuracy_high"]]
            axes.plot(
                ends,
                [row, row],
                marker="|",
                ms=9,
                mew=1.6,
                label=f"interval of {method}",
                **INTERVAL,
            )
        accuracies = list(entry["clients"].values())
        axes.plot(accuracies, [row] * len(accuracies), **DOT)
        axes.plot([entry["worst_accuracy"]], [row], **WORST)
        text = f"{entry['mean_accuracy']:.3f}   worst {entry['worst_accuracy']:.3f} ({entry['worst_client']})"
        axes.text(1.03, row, text, va="center", size=9, color=canvas.INK)
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


def _points(rows: list[dict], value: str) -> tuple[list[float], list[float]]:
    """Rounds, and their values; not every round was fine-tuned."""
    having = [row for row in rows if value in row]
    return [row["round"] for row in having], [row[value] for row in having]


def _level(axes, method: str, value: float) -> None:
    colour = canvas.colour(method)
    axes.axhline(value, color=colour, lw=1.2, ls=(0, (1, 2)), zorder=1)
    place = {
        "xy": (1, value),
        "xycoords": ("axes fraction", "data"),
        "xytext": (-3, 3),
        "textcoords": "offset points",
    }
    axes.annotate(method, ha="right", size=8, color=colour, **place)


def _line(algorithm: str, upper_bound: bool) -> dict:
    return {
        "color": canvas.colour(algorithm),
        "lw": 1.8,
        "ls": ":" if upper_bound else "-",
        "marker": "o",
        "ms": 3.5,
    }
