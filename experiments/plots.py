"""The pictures: paired differences, Fig. 2's curves, Fig. 3's four figures against epsilon, Fig. 4's scatter."""

from collections.abc import Iterable

from matplotlib.figure import Figure

from experiments.plans import GROUPS, STABILISERS
from experiments.summaries import accuracies_in_both, by, generators, mean
from experiments.tables import BASES
from experiments.variant_tables import variants_of
from pipelines.reporting import canvas, new_clients_plot
from pipelines.reporting.epsilon_plot import COLOURS
from pipelines.reporting.findings import marked

FIDELITY = {
    "accuracy": "accuracy after fine-tuning",
    "macro_f1": "macro-F1 after fine-tuning",
    "inception_score": "inception score",
    "fid": "FID (own extractor)",
}


def differences(table: list[dict], rows: list[dict]) -> Figure:
    """Tables II to IV: each row's accuracy less `local`'s, with its interval; a panel per data set."""
    panels = by([row for row in table if row["over_local"] is not None], "dataset")
    names = list(dict.fromkeys(_name(row) for own in panels.values() for row in own))
    colours = _colours(table)
    drawn = canvas.figure(1.3 + 0.34 * len(names))
    for axes, (dataset, own) in zip(_panels(drawn, max(len(panels), 1)), panels.items()):
        axes.axvline(0, color=canvas.INK, lw=1)
        for row in own:
            y, colour = (
                names.index(_name(row)) + _shift(row["generator"], colours),
                colours[row["generator"]],
            )
            if row["over_local_low"] is not None:
                axes.plot(
                    [row["over_local_low"], row["over_local_high"]], [y, y], color=colour, lw=1.6
                )
            axes.plot([row["over_local"]], [y], ls="", marker="o", ms=5, color=colour)
        axes.set_yticks(range(len(names)), names if axes is drawn.axes[0] else [])
        axes.set_ylim(len(names) - 0.5, -0.5)
        canvas.label(axes, dataset, "accuracy less that of local, 95 % interval over cells", "")
    _key(drawn, colours)
    return drawn


def against_epsilon(table: list[dict], rows: list[dict]) -> Figure:
    """Table V, and the paper's Fig. 3."""
    drawn, lines = canvas.figure(6.0), [(*key, own) for key, own in _lines(table)]
    for axes, (field, label) in zip(drawn.subplots(2, 2).flat, FIDELITY.items()):
        for index, (dataset, generator, own) in enumerate(lines):
            style = {
                "color": COLOURS[index % len(COLOURS)],
                "marker": canvas.MARKERS[index % len(canvas.MARKERS)],
            }
            at = [list(GROUPS).index(row["epsilon"]) for row in own]
            axes.plot(at, [row[field] for row in own], label=f"{dataset}, {generator}", **style)
        paper = {"accuracy": "published_bmta", "macro_f1": "published_bmt_f1"}.get(field)
        if paper and lines:
            own = lines[0][2]
            at = [list(GROUPS).index(row["epsilon"]) for row in own]
            axes.plot(
                at,
                [row[paper] for row in own],
                color=canvas.OTHER,
                ls=":",
                label="paper (test-selected)",
            )
        axes.set_xticks(range(len(GROUPS)), ["∞" if group == "inf" else group for group in GROUPS])
        canvas.label(axes, label, "clients' epsilons", "")
    canvas.legend(drawn, drawn.axes[0].get_legend_handles_labels()[0])
    return drawn


def stabilisers(table: list[dict], rows: list[dict]) -> Figure:
    """Fig. 2: two panels per data set and generator; means over seeds, banded from the least to the most."""
    pairs = [(dataset, generator) for (dataset, generator), _ in _lines(table)]
    drawn = canvas.figure(3.2 * len(pairs))
    for (shared, home), (dataset, generator) in zip(
        drawn.subplots(len(pairs), 2, squeeze=False), pairs
    ):
        variants = variants_of(
            [row for row in rows if row["dataset"] == dataset], generator, STABILISERS
        )
        for index, (variant, own) in enumerate(variants.items()):
            style = {"color": COLOURS[index], "label": variant}
            curves = [row["shared_per_round"][generator] for row in own]
            _banded(shared, range(len(curves[0])), curves, style)
            curves = [row["methods"][f"pppfl/{generator}"]["curve"] for row in own]
            x = [point["round"] for point in curves[0]]
            _banded(home, x, [[point["accuracy_after"] for point in one] for one in curves], style)
        canvas.label(
            shared,
            f"{dataset}, {generator}: the shared model",
            "round",
            "accuracy on the global test set",
        )
        canvas.label(home, "After fine-tuning at home", "round", "mean accuracy over clients")
    canvas.legend(drawn, drawn.axes[0].get_legend_handles_labels()[0])
    return drawn


def newcomers(table: list[dict], rows: list[dict]) -> Figure:
    """Accuracy against the number of labels, a panel per data set and number of rounds."""
    lines = {
        f"{dataset}, {rounds} rounds": {
            method: {
                row["labels"]: {"accuracy": row["accuracy"], "low": None, "high": None}
                for row in of
            }
            for method, of in by(same, "method").items()
        }
        for dataset, own in by(table, "dataset").items()
        for rounds, same in by(own, "rounds").items()
    }
    return new_clients_plot.new_clients(lines, title="{}")


def gains(table: list[dict], rows: list[dict]) -> Figure:
    """Fig. 4: a panel per data set and base, a point per client and seed."""
    panels, colours = by(rows, "dataset"), _colours(table)
    drawn = canvas.figure(3.8 * len(panels))
    for line, (dataset, own) in zip(
        drawn.subplots(len(panels), len(BASES), squeeze=False), panels.items()
    ):
        for axes, base in zip(line, BASES):
            axes.axhline(0, color=canvas.INK, lw=1)
            for generator in generators(own):
                alone, ours = accuracies_in_both(own, base, f"pppfl/{generator}")
                y = [b - a for a, b in zip(alone, ours)]
                axes.plot(alone, y, ls="", marker="o", ms=5, color=colours[generator])
            canvas.label(axes, dataset, f"accuracy of {base}", "PPPFL's accuracy less it")
    _key(drawn, colours)
    return drawn


def _panels(drawn: Figure, count: int) -> list:
    return list(drawn.subplots(1, count, squeeze=False)[0])


def _lines(table: list[dict]) -> list[tuple[tuple[str, str], list[dict]]]:
    """Rows by (data set, generator)."""
    return [
        ((dataset, generator), own)
        for dataset, of in by(table, "dataset").items()
        for generator, own in by(of, "generator").items()
    ]


def _name(row: dict) -> str:
    return row.get("flow") or marked(row["method"], row)


def _colours(table: list[dict]) -> dict[str, str]:
    """Of generators; what has none is grey."""
    names = sorted({row["generator"] for row in table} - {""})
    return {"": canvas.OTHER, **dict(zip(names, COLOURS))}


def _shift(generator: str, colours: dict[str, str]) -> float:
    """So that generators of one row do not cover each other."""
    names = list(colours)[1:]
    return 0.24 * (names.index(generator) - (len(names) - 1) / 2) if generator else 0.0


def _key(drawn: Figure, colours: dict[str, str]) -> None:
    axes = drawn.axes[0]
    handles = [
        axes.plot([], [], ls="", marker="o", color=colour, label=generator)[0]
        for generator, colour in colours.items()
        if generator
    ]
    canvas.legend(drawn, handles)


def _banded(axes, x: Iterable[int], curves: list[list[float]], style: dict) -> None:
    """A curve per seed, as their mean and their extent."""
    x = list(x)
    axes.plot(x, [mean(list(values)) for values in zip(*curves)], **style)
    if len(curves) > 1:
        ends = [[pick(values) for values in zip(*curves)] for pick in (min, max)]
        axes.fill_between(x, *ends, color=style["color"], alpha=0.13, lw=0)
