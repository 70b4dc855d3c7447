"""The picture of what an epsilon bought: every release of every client at its price."""

import math

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pipelines.reporting import canvas

COLOURS = ("#0072B2", "#CC79A7", "#009E73", "#E69F00", "#56B4E9")  # of generators
LABEL = "epsilon per release (log scale; unit: record)"
APART = 1.06  # factor between clients of equal epsilon

Place = tuple[str, float]  # a client and the epsilon it paid


def epsilon(summary: dict) -> Figure:
    """Accuracy against epsilon: trained on one client's synthetic set alone, and after fine-tuning at home.

    A release stands at its client's budget, or at infinity where it has none: `gan` ignores the budget.
    """
    figure = canvas.figure(4.2)
    alone, home = figure.subplots(1, 2)
    clients = summary["clients"]
    releases = {
        client: entry["generators"] | entry["dp_baselines"] for client, entry in clients.items()
    }
    price = {
        (client, name): entry["epsilon"] if math.isfinite(release["epsilon"]) else math.inf
        for client, entry in clients.items()
        for name, release in releases[client].items()
    }
    at = places([(client, paid) for (client, _), paid in price.items()])
    names = list(dict.fromkeys(name for _, name in price))
    handles = [Line2D([], [], **_style(index, name, summary)) for index, name in enumerate(names)]
    for index, name in enumerate(names):
        style = _style(index, name, summary)
        x = [at[client, price[client, name]] for client in clients]
        home.plot(x, [_at_home(releases[client][name]) for client in clients], **style)
        if "tstr_accuracy_global" in next(iter(releases.values()))[name]:
            scores = [releases[client][name]["tstr_accuracy_global"] for client in clients]
            alone.plot(x, [math.nan if score is None else score for score in scores], **style)
    for axes in (alone, home):
        _axis(axes, at)
    canvas.label(
        alone,
        "Trained on one client's synthetic images alone",
        LABEL,
        "accuracy on the global test set",
    )
    canvas.label(
        home,
        "After the method and fine-tuning at home",
        LABEL,
        "accuracy on the client's test part",
    )
    for axes in (alone, home):
        axes.grid(visible=False, axis="x")
    canvas.legend(figure, handles)
    return figure


def places(paid: list[Place]) -> dict[Place, float]:
    """x of each (client, epsilon): infinity at three times the largest; equals stand side by side."""
    unique = list(dict.fromkeys(paid))
    largest = max((value for _, value in unique if math.isfinite(value)), default=1.0)
    found = {}
    for client, value in unique:
        equals = [name for name, other in unique if other == value]
        x = value if math.isfinite(value) else 3 * largest
        found[client, value] = x * APART ** (equals.index(client) - (len(equals) - 1) / 2)
    return found


def _at_home(release: dict) -> float:
    """Not drawn where the shared model has collapsed."""
    return math.nan if release["collapsed"] else release["accuracy_after"]


def _axis(axes, at: dict[Place, float]) -> None:
    axes.set_xscale("log")
    axes.minorticks_off()
    groups = {}
    for (client, value), x in at.items():
        groups.setdefault(value, []).append(math.log(x))
        axes.axvline(x, color=canvas.FAINT, lw=1, zorder=0)
        name = {"rotation": 90, "ha": "center", "va": "bottom", "size": 8, "color": canvas.OTHER}
        axes.text(x, 0.015, client, transform=axes.get_xaxis_transform(), **name)
    ticks = [math.exp(sum(group) / len(group)) for group in groups.values()]
    axes.set_xticks(ticks, ["∞" if math.isinf(value) else f"{value:g}" for value in groups])
    if at:
        axes.set_xlim(min(at.values()) / 1.25, max(at.values()) * 1.25)
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom - 0.1 * (top - bottom), top)  # room for the names


def _style(index: int, name: str, summary: dict) -> dict:
    """A generator has a colour and a marker of its own; a DP baseline its method's."""
    colour, marker = COLOURS[index % len(COLOURS)], canvas.MARKERS[index % len(canvas.MARKERS)]
    if name in summary["methods"]:
        colour, marker = canvas.colour(name), "^"
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
