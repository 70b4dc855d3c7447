"""Draws an audit: each claim, and beneath it what an attack proved."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipelines.reporting import canvas

GROUPS = {"mechanisms": "#0072B2", "attacks": "#009E73", "controls": "#D55E00"}
TITLE = "Claimed epsilon (bar) and what an attack proved (dot); controls must break their claims"


def draw(report: dict) -> Figure:
    """Draws a row per audit with a finite claim, by group.

    The controls' dots must lie beyond their bars.
    """
    rows = []
    for group, colour in GROUPS.items():
        for name, figures in report[group].items():
            if figures["epsilon_claimed"] != float("inf"):
                rows.append((name, figures, colour))
    figure = canvas.figure(1.2 + 0.36 * len(rows))
    axes = figure.subplots()
    for row, (_, figures, colour) in enumerate(rows):
        _draw_row(axes, row, figures, colour)
    axes.set_yticks(range(len(rows)), [name.replace("_", " ") for name, _, _ in rows])
    axes.set_xlim(left=0)
    axes.invert_yaxis()
    canvas.label(axes, TITLE, "epsilon at delta of the claim", "")
    axes.grid(visible=False, axis="y")
    return figure


def _draw_row(axes: Axes, row: int, figures: dict, colour: str) -> None:
    claimed = figures["epsilon_claimed"]
    lower = figures["epsilon_lower"]
    axes.barh(row, claimed, height=0.6, color=colour, alpha=0.25, zorder=1)
    axes.plot([lower], [row], "o", ms=7, mfc=colour, mec="white", zorder=3, clip_on=False)
    text = f"{lower:.2f} of {claimed:.2f}{'' if figures['passed'] else ', broken'}"
    to_the_right = axes.get_yaxis_transform()
    axes.text(1.01, row, text, va="center", size=9, color=canvas.INK, transform=to_the_right)
