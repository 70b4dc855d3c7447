"""Draws what an epsilon bought: every release of every client at its price."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pipelines.reporting import canvas

# One colour per generator.
COLOURS = ("#0072B2", "#CC79A7", "#009E73", "#E69F00", "#56B4E9")
LABEL = "epsilon per release (log scale; unit: record)"
# Factor between the places of clients with equal epsilon.
APART = 1.06

# A client and the epsilon it paid.
Place = tuple[str, float]


def epsilon(summary: dict) -> Figure:
    """Draws accuracy against epsilon in two panels, a point per client and release.

    On the left a model is trained on one client's synthetic set alone. On the right it is
    fine-tuned locally. A release stands at its client's budget, or at infinity if its own epsilon
    is infinite: `gan` ignores the budget.

    Args:
        summary: What `summary.build` returned.
    """
    figure = canvas.figure(4.2)
    alone, home = figure.subplots(1, 2)
    releases = {}
    for client, entry in summary["clients"].items():
        releases[client] = entry["generators"] | entry["dp_baselines"]
    prices = {}
    paid = []
    for client, by_name in _prices(summary, releases).items():
        for name, price in by_name.items():
            prices.setdefault(name, {})[client] = price
            paid.append((client, price))
    x_of = places(paid)
    handles = []
    for index, name in enumerate(prices):
        style = _style(index, name, summary)
        handles.append(Line2D([], [], **style))
        x = list(map(x_of.get, prices[name].items()))
        named = [releases[client][name] for client in prices[name]]
        home.plot(x, list(map(_local_accuracy, named)), **style)
        if "tstr_accuracy_global" in named[0]:
            alone.plot(x, list(map(_tstr_accuracy, named)), **style)
    _axis(alone, x_of)
    _axis(home, x_of)
    title = "Trained on one client's synthetic images alone"
    canvas.label(alone, title, LABEL, "accuracy on the global test set")
    title = "After the method and fine-tuning at home"
    canvas.label(home, title, LABEL, "accuracy on the client's test part")
    for axes in (alone, home):
        axes.grid(visible=False, axis="x")
    canvas.legend(figure, handles)
    return figure


def places(paid: list[Place]) -> dict[Place, float]:
    """Returns the x of each (client, epsilon).

    Infinity stands at three times the largest epsilon, and equal epsilons stand side by side.

    Example:
        >>> places([("a", 3.0), ("b", 10.0), ("c", float("inf"))])
        {('a', 3.0): 3.0, ('b', 10.0): 10.0, ('c', inf): 30.0}
    """
    clients = {}
    for client, value in dict.fromkeys(paid):
        clients.setdefault(value, []).append(client)
    largest = max(filter(math.isfinite, clients), default=1.0)
    x_of = {}
    for client, value in dict.fromkeys(paid):
        equals = clients[value]
        x = value if math.isfinite(value) else 3 * largest
        x_of[client, value] = x * APART ** (equals.index(client) - (len(equals) - 1) / 2)
    return x_of


def _prices(summary: dict, releases: dict[str, dict]) -> dict[str, dict[str, float]]:
    """Returns {client: {release: the epsilon at which it stands}}."""
    prices = {}
    for client, entry in summary["clients"].items():
        prices[client] = {}
        for name, release in releases[client].items():
            is_finite = math.isfinite(release["epsilon"])
            prices[client][name] = entry["epsilon"] if is_finite else math.inf
    return prices


def _local_accuracy(release: dict) -> float:
    """Returns the accuracy after fine-tuning; nan, which is not drawn, if the model collapsed."""
    return math.nan if release["collapsed"] else release["accuracy_after"]


def _tstr_accuracy(release: dict) -> float:
    """Returns the accuracy of a model trained on the set alone; nan if there is none."""
    score = release["tstr_accuracy_global"]
    return math.nan if score is None else score


def _axis(axes: Axes, x_of: dict[Place, float]) -> None:
    """Draws the epsilons below a panel, and a line with the client's name at each place."""
    axes.set_xscale("log")
    axes.minorticks_off()
    style = {"rotation": 90, "ha": "center", "va": "bottom", "size": 8, "color": canvas.OTHER}
    groups = {}
    for (client, value), x in x_of.items():
        groups.setdefault(value, []).append(math.log(x))
        axes.axvline(x, color=canvas.FAINT, lw=1, zorder=0)
        axes.text(x, 0.015, client, transform=axes.get_xaxis_transform(), **style)
    ticks = []
    labels = []
    for value, group in groups.items():
        ticks.append(math.exp(sum(group) / len(group)))
        labels.append("∞" if math.isinf(value) else f"{value:g}")
    axes.set_xticks(ticks, labels)
    if x_of:
        axes.set_xlim(min(x_of.values()) / 1.25, max(x_of.values()) * 1.25)
    # The names need room below the points.
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom - 0.1 * (top - bottom), top)


def _style(index: int, name: str, summary: dict) -> dict:
    """Returns the look of a release: its generator's own, or that of its noisy algorithm."""
    if name in summary["methods"]:
        colour = canvas.colour(name)
        marker = "^"
    else:
        colour = COLOURS[index % len(COLOURS)]
        marker = canvas.MARKERS[index % len(canvas.MARKERS)]
    return {
        "ls": "",
        "marker": marker,
        "ms": 7,
        "mfc": colour,
        "mec": "white",
        "mew": 0.8,
        "label": name,
        "zorder": 3,
    }
