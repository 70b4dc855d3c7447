"""Picture of new clients: accuracy against the number of labels, a panel per generator."""

from matplotlib.figure import Figure

from pipelines.reporting import canvas

STYLES = (
    "-",
    "--",
    ":",
    "-.",
    (0, (5, 1)),
    (0, (3, 1, 1, 1)),
)  # beside the markers: several share a colour
BAR = {"random_init": canvas.INK}  # what the others are held against stands out


def new_clients(points: dict[str, dict], title: str = "Models from {}") -> Figure:
    """A line per algorithm with its interval as a band; the axis of labels is logarithmic, with 0 at its left end.

    Args:
        points: new_clients.points.
        title: of a panel, with a place for its key.
    """
    figure = canvas.figure(4.2)
    panels = figure.subplots(1, len(points), sharey=True, squeeze=False)[0]
    names = list(dict.fromkeys(_bare(method) for methods in points.values() for method in methods))
    for axes, (generator, methods) in zip(panels, points.items(), strict=True):
        for method, line in methods.items():
            _line(axes, method, line, names.index(_bare(method)))
        counts = list(next(iter(methods.values())))
        axes.set_xscale("log")
        axes.set_xticks(_places(counts), [str(count) for count in counts])
        axes.minorticks_off()
        axes.set_ylim(0, 1)
        canvas.label(axes, title.format(generator), "labelled records at home", "")
    panels[0].set_ylabel("accuracy on the own test part", size=9, color=canvas.INK)
    handles = {
        handle.get_label(): handle
        for axes in panels
        for handle in axes.get_legend_handles_labels()[0]
    }
    canvas.legend(figure, [handles[name] for name in names])
    return figure


def _line(axes, method: str, line: dict[int, dict], number: int) -> None:
    x, entries, colour = (
        _places(list(line)),
        list(line.values()),
        BAR.get(method) or canvas.colour(method),
    )
    look = {
        "color": colour,
        "marker": canvas.MARKERS[number % len(canvas.MARKERS)],
        "ms": 4.5,
        "lw": 1.8,
    }
    style = STYLES[number % len(STYLES)]
    axes.plot(x, [entry["accuracy"] for entry in entries], label=_bare(method), ls=style, **look)
    known = [
        (place, entry) for place, entry in zip(x, entries, strict=True) if entry["low"] is not None
    ]
    if known:
        places, those = zip(*known, strict=True)
        ends = ([entry[end] for entry in those] for end in ("low", "high"))
        axes.fill_between(places, *ends, color=colour, alpha=0.13, lw=0)


def _bare(method: str) -> str:
    return method.partition("/")[0]


def _places(counts: list[int]) -> list[float]:
    """Where each number of labels stands; 0 has no logarithm and stands at half the smallest."""
    return [count or min(filter(None, counts), default=2) / 2 for count in counts]
