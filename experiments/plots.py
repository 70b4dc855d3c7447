"""Draws the pictures: paired differences, curves over rounds, figures against epsilon, gains.

They draw Tables II to IV, Fig. 2, Table V with Fig. 3, Fig. 4 and the newcomers.
"""

import math
import operator

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import new_clients_plot
from experiments.plans import GROUPS, STABILISERS
from experiments.summaries import accuracies_in_both, by, cells, generators, mean
from experiments.tables import BASES
from experiments.variant_tables import variants_of
from pipelines.evaluation import image_quality
from pipelines.evaluation.metrics import METRICS
from pipelines.reporting import canvas
from pipelines.reporting.findings import marked

# Height of a panel of Table V, in inches.
PANEL_HEIGHT = 3.0


def differences(table: list[dict], rows: list[dict]) -> Figure:
    """Draws each row's accuracy less `local`'s with its interval; a panel per data set."""
    compared = [row for row in table if row["over_local"] is not None]
    panels = by(compared, "dataset")
    names = _names(panels)
    colours = _colours(table)
    drawn = canvas.figure(1.3 + 0.34 * len(names))
    panel_axes = drawn.subplots(1, max(len(panels), 1), squeeze=False)[0]
    for axes, (dataset, shown) in zip(panel_axes, panels.items()):
        axes.axvline(0, color=canvas.INK, lw=1)
        for row in shown:
            colour = colours[row["generator"]]
            y = names.index(_name(row)) + _shift(row["generator"], colours)
            ends = [row["over_local_low"], row["over_local_high"]]
            if row["over_local_low"] is not None:
                axes.plot(ends, [y, y], color=colour, lw=1.6)
            axes.plot([row["over_local"]], [y], ls="", marker="o", ms=5, color=colour)
        axes.set_yticks(range(len(names)), names if axes is drawn.axes[0] else [])
        axes.set_ylim(len(names) - 0.5, -0.5)
        canvas.label(axes, dataset, "accuracy less that of local, 95 % interval over cells", "")
    _key(drawn, colours)
    return drawn


def against_epsilon(table: list[dict], rows: list[dict]) -> Figure:
    """Draws Table V, the paper's Fig. 3: every metric against the clients' epsilons."""
    lines = _lines(table)
    panels = _epsilon_panels()
    count = math.ceil(len(panels) / 2)
    drawn = canvas.figure(PANEL_HEIGHT * count)
    for axes, (field, label) in zip(drawn.subplots(count, 2).flat, panels.items()):
        for index, ((dataset, generator), shown) in enumerate(lines):
            style = {
                "color": canvas.OF_GENERATORS[index % len(canvas.OF_GENERATORS)],
                "marker": canvas.MARKERS[index % len(canvas.MARKERS)],
                "label": f"{dataset}, {generator}",
            }
            _against_groups(axes, shown, field, style)
        paper = _published_field(field)
        if lines and paper in lines[0][1][0]:
            style = {"color": canvas.OTHER, "ls": ":", "label": "paper (test-selected)"}
            _against_groups(axes, lines[0][1], paper, style)
        axes.set_xticks(range(len(GROUPS)), [group.replace("inf", "∞") for group in GROUPS])
        canvas.label(axes, label, "clients' epsilons", "")
    canvas.legend(drawn, drawn.axes[0].get_legend_handles_labels()[0])
    return drawn


def stabilisers(table: list[dict], rows: list[dict]) -> Figure:
    """Draws Fig. 2: two panels per data set and generator.

    On the left is the shared model of each round, as the mean over seeds. A band reaches from the
    lowest to the highest. On the right is a point per client and seed after the last round was
    fine-tuned, and a line at their mean.

    Args:
        table: Rows of `variant_tables.figure2`.
        rows: The stored runs.
    """
    pairs = list(dict(_lines(table)))
    drawn = canvas.figure(3.2 * len(pairs))
    panels = drawn.subplots(len(pairs), 2, squeeze=False)
    for (shared, home), (dataset, generator) in zip(panels, pairs):
        dataset_rows = [row for row in rows if row["dataset"] == dataset]
        variants = variants_of(dataset_rows, generator, STABILISERS)
        for index, (variant, runs) in enumerate(variants.items()):
            colour = canvas.OF_GENERATORS[index]
            curves = [run["shared_per_round"][generator] for run in runs]
            _banded(shared, curves, {"color": colour, "label": variant})
            accuracies = list(cells(runs, f"pppfl/{generator}", "accuracy").values())
            home.plot([index] * len(accuracies), accuracies, "o", color=colour, alpha=0.5)
            home.hlines(mean(accuracies), index - 0.25, index + 0.25, color=colour)
        home.set_xticks(range(len(variants)), list(variants))
        title = f"{dataset}, {generator}: the shared model"
        canvas.label(shared, title, "round", "accuracy on the global test set")
        canvas.label(home, "After fine-tuning at home", "", "accuracy, a point per client")
    canvas.legend(drawn, drawn.axes[0].get_legend_handles_labels()[0])
    return drawn


def newcomers(table: list[dict], rows: list[dict]) -> Figure:
    """Draws accuracy against labels, a panel per data set."""
    panels = {}
    for row in table:
        panel = panels.setdefault(row["dataset"], {})
        line = panel.setdefault(row["method"], {})
        line[row["labels"]] = {"accuracy": row["accuracy"], "low": None, "high": None}
    return new_clients_plot.new_clients(panels, title="{}")


def gains(table: list[dict], rows: list[dict]) -> Figure:
    """Draws Fig. 4: a panel per data set and base, a point per client and seed."""
    datasets = by(rows, "dataset")
    colours = _colours(table)
    drawn = canvas.figure(3.8 * len(datasets))
    panels = drawn.subplots(len(datasets), len(BASES), squeeze=False)
    for line, (dataset, runs) in zip(panels, datasets.items()):
        for axes, base in zip(line, BASES):
            axes.axhline(0, color=canvas.INK, lw=1)
            for generator in generators(runs):
                alone, ours = accuracies_in_both(runs, base, f"pppfl/{generator}")
                gain = list(map(operator.sub, ours, alone))
                axes.plot(alone, gain, ls="", marker="o", ms=5, color=colours[generator])
            canvas.label(axes, dataset, f"accuracy of {base}", "PPPFL's accuracy less it")
    _key(drawn, colours)
    return drawn


def _epsilon_panels() -> dict[str, str]:
    """Returns {field: title} of the panels of Table V."""
    panels = {metric.name: f"{metric.heading} after fine-tuning" for metric in METRICS}
    panels["inception_score"] = "inception score"
    for metric in image_quality.on_pages():
        panels[metric.name] = f"{metric.heading} (own extractor)"
    return panels


def _published_field(field: str) -> str | None:
    """Returns the column of the paper's figures of a metric; None for what is no metric."""
    for metric in METRICS:
        if metric.name == field:
            return f"published_{metric.best_key}"
    return None


def _against_groups(axes: Axes, rows: list[dict], field: str, style: dict) -> None:
    """Draws a line of one field against the groups of epsilons."""
    places = []
    values = []
    for row in rows:
        places.append(list(GROUPS).index(row["epsilon"]))
        values.append(row[field])
    axes.plot(places, values, **style)


def _lines(table: list[dict]) -> list[tuple[tuple[str, str], list[dict]]]:
    """Returns the rows by (data set, generator)."""
    lines = []
    for dataset, rows in by(table, "dataset").items():
        for generator, shown in by(rows, "generator").items():
            lines.append(((dataset, generator), shown))
    return lines


def _names(panels: dict[str, list[dict]]) -> list[str]:
    """Returns the labels of the rows of all panels, in the order in which they first come."""
    names = {}
    for rows in panels.values():
        names |= dict.fromkeys(map(_name, rows))
    return list(names)


def _name(row: dict) -> str:
    """Returns the label of a row: its flow of data, or its method with its marks."""
    return row.get("flow") or marked(row["method"], row)


def _colours(table: list[dict]) -> dict[str, str]:
    """Returns a colour for each generator; what has none is grey."""
    names = sorted({row["generator"] for row in table} - {""})
    return {"": canvas.OTHER, **dict(zip(names, canvas.OF_GENERATORS))}


def _shift(generator: str, colours: dict[str, str]) -> float:
    """Returns an offset, so that generators of one row do not cover each other."""
    names = list(colours)[1:]
    return 0.24 * (names.index(generator) - (len(names) - 1) / 2) if generator else 0.0


def _key(drawn: Figure, colours: dict[str, str]) -> None:
    """Draws the legend of generators."""
    axes = drawn.axes[0]
    handles = []
    for generator, colour in colours.items():
        if generator:
            handles += axes.plot([], [], ls="", marker="o", color=colour, label=generator)
    canvas.legend(drawn, handles)


def _banded(axes: Axes, curves: list[list[float]], style: dict) -> None:
    """Draws one curve over rounds per seed as their mean and their extent."""
    by_round = list(zip(*curves))
    rounds = range(len(by_round))
    axes.plot(rounds, [mean(list(values)) for values in by_round], **style)
    if len(curves) > 1:
        low = list(map(min, by_round))
        high = list(map(max, by_round))
        axes.fill_between(rounds, low, high, color=style["color"], alpha=0.13, lw=0)
