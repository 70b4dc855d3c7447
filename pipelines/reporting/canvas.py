"""What the pictures share: Figures of their own (no pyplot, no global state, Agg underneath), colours, axes."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with any kind of colour vision, for the methods most looked at.
COLOURS = {
    "pppfl": "#0072B2",
    "fedavg": "#E69F00",
    "pooled": "#009E73",
    "dpsgd": "#D55E00",
    "local": "#4d4d4d",
}
COLOURS |= {"fedmeta": "#56B4E9", "scaffold": "#CC79A7", "fedprox": "#8c6d31", "fednova": "#bcbd22"}
COLOURS |= {
    "adap": "#e377c2",
    "agn": "#7a1f6b",
    "ali": "#ff9d6b",
    "dpsgd_warm": "#8b1a00",
    "nbafl": "#5f8f3f",
}
COLOURS |= {"reptile": "#6b4c9a", "sda_fl": "#17a398", "pppfl_paper": "#12355b"}
COLOURS |= {"fedavg_real": COLOURS["fedavg"], "pppfl_real": COLOURS["pppfl"]}
OTHER, INK, FAINT = "#8c8c8c", "#333333", "#dddddd"
MARKERS = "osD^v"
DPI = 150


def colour(method: str) -> str:
    """By the algorithm's name, whatever the generator."""
    return COLOURS.get(method.partition("/")[0], OTHER)


def figure(height: float) -> Figure:
    """An empty figure as wide as the page, `height` inches high."""
    empty = Figure(figsize=(9.0, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(empty)
    return empty


def label(axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, size=10.5, loc="left", color=INK)
    axes.set_xlabel(x, size=9, color=INK)
    axes.set_ylabel(y, size=9, color=INK)
    axes.tick_params(labelsize=9, colors=INK, length=0)
    axes.grid(color=FAINT, lw=0.7, zorder=0)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)


def legend(drawn: Figure, handles: list) -> None:
    """Under the panels, for both."""
    if handles:
        drawn.legend(
            handles=handles,
            loc="outside lower center",
            ncols=min(4, len(handles)),
            frameon=False,
            fontsize=9,
        )


def save(drawn: Figure, path) -> None:
    """PNG, the same bytes for the same numbers."""
    drawn.savefig(path, dpi=DPI, metadata={"Software": None})
