"""The picture of an audit: each claim, and beneath it what an attack proved."""

from matplotlib.figure import Figure

from pipelines.reporting import canvas

GROUPS = {"mechanisms": "#0072B2", "attacks": "#009E73", "controls": "#D55E00"}
TITLE = "Claimed epsilon (bar) and what an attack proved (dot); controls must break their claims"


def draw(report: dict) -> Figure:
    """A row per audit with a finite claim, by group; the controls' dots must lie beyond their bars."""
    rows = [
        (name, entry, colour)
        for group, colour in GROUPS.items()
        for name, entry in report[group].items()
        if entry["epsilon_claimed"] != float("inf")
    ]
    figure = canvas.figure(1.2 + 0.36 * len(rows))
    axes = figure.subplots()
    for row, (_, entry, colour) in enumerate(rows):
        axes.barh(row, entry["epsilon_claimed"], height=0.6, color=colour, alpha=0.25, zorder=1)
        axes.plot(
            [entry["epsilon_lower"]],
            [row],
            "o",
            ms=7,
            mfc=colour,
            mec="white",
            zorder=3,
            clip_on=False,
        )
        text = f"{entry['epsilon_lower']:.2f} of {entry['epsilon_claimed']:.2f}{'' if entry['passed'] else ', broken'}"
        axes.text(
            1.01,
            row,
            text,
            va="center",
            size=9,
            color=canvas.INK,
            transform=axes.get_yaxis_transform(),
        )
    axes.set_yticks(range(len(rows)), [name.replace("_", " ") for name, _, _ in rows])
    axes.set_xlim(left=0)
    axes.invert_yaxis()
    canvas.label(axes, TITLE, "epsilon at delta of the claim", "")
    axes.grid(visible=False, axis="y")
    return figure
