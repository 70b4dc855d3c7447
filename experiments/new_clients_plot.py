"""Draws new clients: accuracy against the number of labels, a panel per generator."""

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipelines.reporting import canvas

# Markers alone do not tell lines apart, for several methods share a colour.
STYLES = (
    "-",
    "--",
    ":",
    "-.",
    (0, (5, 1)),
    (0, (3, 1, 1, 1)),
)
# The other methods are compared with this one, so it stands out.
BAR = {"random_init": canvas.INK}


def new_clients(points: dict[str, dict], title: str = "Models from {}") -> Figure:
    """Draws a line per algorithm, with its interval as a band.

    The axis of labels is logarithmic, with 0 at its left end.

    Args:
        points: What `new_clients.points` returned: {panel: {method: {labels: point}}}.
        title: The title of a panel, with a place for the panel's key.
    """
    figure = canvas.figure(4.2)
    panels = figure.subplots(1, len(points), sharey=True, squeeze=False)[0]
    names = _algorithms(points)
    for axes, (generator, methods) in zip(panels, points.items(), strict=True):
        for method, line in methods.items():
            _line(axes, method, line, names.index(_algorithm(method)))
        counts = list(next(iter(methods.values())))
        axes.set_xscale("log")
        axes.set_xticks(_places(counts), [str(count) for count in counts])
        axes.minorticks_off()
        axes.set_ylim(0, 1)
        canvas.label(axes, title.format(generator), "labelled records at home", "")
    panels[0].set_ylabel("accuracy on the own test part", size=9, color=canvas.INK)
    handles = _handles(panels)
    canvas.legend(figure, [handles[name] for name in names])
    return figure


def _algorithms(points: dict[str, dict]) -> list[str]:
    """Returns the algorithms of all panels, in the order in which they first come."""
    names = {}
    for methods in points.values():
        names |= dict.fromkeys(map(_algorithm, methods))
    return list(names)


def _handles(panels: list[Axes]) -> dict[str, Artist]:
    """Returns a line of each algorithm for the legend."""
    handles = {}
    for axes in panels:
        lines, labels = axes.get_legend_handles_labels()
        handles |= dict(zip(labels, lines, strict=True))
    return handles


def _line(axes: Axes, method: str, line: dict[int, dict], index: int) -> None:
    """Draws one method; the index chooses its marker and the style of its line."""
    x = _places(list(line))
    entries = list(line.values())
    colour = BAR.get(method) or canvas.colour(method)
    axes.plot(
        x,
        [entry["accuracy"] for entry in entries],
        label=_algorithm(method),
        ls=STYLES[index % len(STYLES)],
        color=colour,
        marker=canvas.MARKERS[index % len(canvas.MARKERS)],
        ms=4.5,
        lw=1.8,
    )
    band = []
    for place, entry in zip(x, entries, strict=True):
        if entry["low"] is not None:
            band.append((place, entry["low"], entry["high"]))
    if band:
        axes.fill_between(*zip(*band, strict=True), color=colour, alpha=0.13, lw=0)


def _algorithm(method: str) -> str:
    """Returns a method's name without its generator."""
    return method.partition("/")[0]


def _places(counts: list[int]) -> list[float]:
    """Returns the x of each number of labels.

    0 has no logarithm and stands at half the smallest other number.
    """
    smallest = min(filter(None, counts), default=2)
    return [count or smallest / 2 for count in counts]
