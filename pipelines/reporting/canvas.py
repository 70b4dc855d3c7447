"""Holds what all pictures share: empty figures, colours, labelled axes, legends and saving.

They are those of audits, benchmarks and experiments. The report's plots are SVG, drawn by its
templates.

Each picture has a Figure of its own on an Agg canvas. pyplot and its global state are not used.
"""

from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# The first methods have the colours of Okabe and Ito, which any kind of colour vision can tell apart.
COLOURS = {
    "pppfl": "#0072B2",
    "fedavg": "#E69F00",
    "pooled": "#009E73",
    "dpsgd": "#D55E00",
    "local": "#4d4d4d",
    "fedmeta": "#56B4E9",
    "scaffold": "#CC79A7",
    "fedprox": "#8c6d31",
    "fednova": "#bcbd22",
    "adap": "#e377c2",
    "agn": "#7a1f6b",
    "ali": "#ff9d6b",
    "dpsgd_warm": "#8b1a00",
    "nbafl": "#5f8f3f",
    "reptile": "#6b4c9a",
    "sda_fl": "#17a398",
    "pppfl_paper": "#12355b",
    "fedavg_real": "#E69F00",
    "pppfl_real": "#0072B2",
}
# One colour per generator.
OF_GENERATORS = (
    "#0072B2",
    "#CC79A7",
    "#009E73",
    "#E69F00",
    "#56B4E9",
)
OTHER = "#8c8c8c"
INK = "#333333"
FAINT = "#dddddd"
MARKERS = "osD^v"
# Width of the page, in inches.
WIDTH = 9.0
DPI = 150


def colour(method: str) -> str:
    """Returns a method's colour, which depends on the algorithm and not on the generator.

    Example:
        >>> colour("pppfl/datalens") == colour("pppfl/dp_moments")
        True
    """
    return COLOURS.get(method.partition("/")[0], OTHER)


def figure(height: float) -> Figure:
    """Returns an empty figure as wide as the page, `height` inches high."""
    empty = Figure(figsize=(WIDTH, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(empty)
    return empty


def label(axes: Axes, title: str, x: str, y: str) -> None:
    """Labels a panel and gives it a faint grid without a frame.

    Args:
        axes: The panel.
        title: Text above its left end.
        x: Label of the horizontal axis.
        y: Label of the vertical axis.
    """
    axes.set_title(title, size=10.5, loc="left", color=INK)
    axes.set_xlabel(x, size=9, color=INK)
    axes.set_ylabel(y, size=9, color=INK)
    axes.tick_params(labelsize=9, colors=INK, length=0)
    axes.grid(color=FAINT, lw=0.7, zorder=0)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)


def legend(drawn: Figure, handles: list[Artist]) -> None:
    """Draws one legend below all panels of the figure."""
    if handles:
        drawn.legend(
            handles=handles,
            loc="outside lower center",
            ncols=min(4, len(handles)),
            frameon=False,
            fontsize=9,
        )


def save(drawn: Figure, path: Path) -> None:
    """Saves a figure as PNG. Equal numbers give equal bytes."""
    drawn.savefig(path, dpi=DPI, metadata={"Software": None})
