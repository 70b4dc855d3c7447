"""Chooses the few lines of each plot of rounds and of new clients, and places them (`line_plot`)."""

from collections.abc import Mapping

from pipelines.reporting import line_plot
from pipelines.reporting.findings import apart
from pipelines.reporting.tables import with_rounds

ALONE = "local"


def rounds(curves: dict[str, list[dict]], generators: list[str], summary: dict) -> list[dict]:
    """Returns two plots per generator: accuracy per round of the shared model, and at home.

    The lines are the recommended road, PPPFL, and those whose shared model ends highest. Methods
    without a generator may be in every plot. At home `local` is a level line.

    Args:
        curves: {method: one dict per round}, as `collect.read` returns them.
        generators: The generators of the parameters.
        summary: What `summary.build` returned.

    Returns:
        [{"generator", "shared", "home": plots, "left": names of the methods that are not drawn}],
        without generators of which no method has rounds, or all have collapsed or learn from noise.
        "home" is None where the last round alone was fine-tuned.
    """
    comparable, _ = apart(summary["methods"])
    moving = {}
    for method, points in with_rounds(curves).items():
        if method in comparable:
            moving[method] = points
    own = {method.partition("/")[2] for method in moving}
    # without images to learn from, the noisy methods have a plot of their own
    panels = [name for name in generators if name in own] or ([""] if moving else [])
    level = curves[ALONE][-1]["accuracy_after"] if ALONE in curves else None
    return [_panel(generator, moving, level, summary) for generator in panels]


def _panel(
    generator: str, moving: dict[str, list[dict]], level: float | None, summary: dict
) -> dict:
    """Returns the two plots of one generator.

    Args:
        generator: Name of the generator; empty for methods that need none.
        moving: The curves that may be drawn.
        level: The accuracy of `local`, or None if it did not run.
        summary: What `summary.build` returned.
    """
    rows = {}
    for method, points in moving.items():
        if method.partition("/")[2] in ("", generator):
            rows[method] = points
    order = _order(rows, generator, summary)
    room = line_plot.MOST_LINES - (level is not None)
    shared = {}
    home = {}
    for method in order[:room]:
        name = method.partition("/")[0]
        shared[name] = _points(rows[method], "global_accuracy")
        home[name] = _points(rows[method], "accuracy_after")
    if level is not None:
        numbers = [x for points in home.values() for x, _ in points]
        home[ALONE] = [(min(numbers), level), (max(numbers), level)]
    moves = any(len(points) > 1 for name, points in home.items() if name != ALONE)
    return {
        "generator": generator,
        "shared": line_plot.plot(shared),
        "home": line_plot.plot(home) if moves else None,
        "left": order[room:],
    }


def newcomers(methods: Mapping[str, Mapping[int, dict]]) -> dict:
    """Returns the plot of accuracy against the number of labels, from one generator's models.

    The untrained start comes first, for the others are held against it. Numbers of labels stand at
    equal distances.

    Args:
        methods: {method: {labels: point}}, as `new_clients.points` returns it for a generator.
    """
    lines = {}
    bands = {}
    counts = sorted({count for line in methods.values() for count in line})
    for method in sorted(methods, key=lambda name: name != "random_init"):
        name = method.partition("/")[0]
        line = methods[method]
        lines[name] = [(counts.index(count), line[count]["accuracy"]) for count in line]
        band = []
        for count, point in line.items():
            if point["low"] is not None:
                band.append((counts.index(count), point["low"], point["high"]))
        bands[name] = band
    labels = {place: str(count) for place, count in enumerate(counts)}
    return line_plot.plot(lines, bands, labels)


def _order(rows: Mapping[str, list[dict]], generator: str, summary: dict) -> list[str]:
    """Returns the methods, the most telling ones first."""
    chosen = summary["choice"]["road"] if summary["choice"] else None
    first = (chosen, f"pppfl/{generator}")

    def place(method: str) -> tuple:
        rank = first.index(method) if method in first else len(first)
        return rank, -rows[method][-1]["global_accuracy"], method

    return sorted(rows, key=place)


def _points(rows: list[dict], field: str) -> list[line_plot.Point]:
    """Returns the rounds that have the field, with its values: not every round is fine-tuned."""
    return [(row["round"], row[field]) for row in rows if field in row]
