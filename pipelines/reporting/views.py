"""Arranges what the page shows of one data set: which rows, in which order, and what is folded."""

from collections.abc import Mapping

from pipelines.config import Params
from pipelines.reporting import (
    answers,
    curves,
    dot_plot,
    findings,
    gains,
    new_clients,
    worth,
)
from pipelines.reporting.dot_plot import Figure

# With more clients than these, what there is of each is folded.
MANY = 10
# More roads than these in the first plot are folded, the best ones at home are not.
MOST_ROADS = 14
# So many clients' grids stand in the first screen.
MOST_GRIDS = 5


def of_dataset(params: Params, run: dict, summary: dict) -> dict:
    """Returns what the templates of the page need of one data set.

    Args:
        params: The parameters of the run.
        run: What `collect.read` returned.
        summary: What `summary.build` returned.
    """
    generators = params.synthesis.generators
    noisy = params.dp_baselines.algorithms
    seeded = params.privacy.noise != "os_entropy"
    comparable, apart = findings.apart(summary["methods"])
    return {
        "summary": summary,
        "answers": answers.of_run(summary, noisy, seeded),
        "warnings": findings.warnings(summary),
        "worth": gains.sentences(
            summary, [name for name in generators if f"pppfl/{name}" in comparable]
        ),
        "comparisons": [row for row in summary["comparisons"] if row["method"] in comparable],
        "roads": roads(summary),
        "clients": clients(summary),
        "comparable": comparable,
        "apart": apart,
        "hands_out": {name: findings.handed_out(name, noisy) for name in summary["methods"]},
        "grids": grids(run["grids"], summary, generators),
        "class_names": class_names(run["cards"]),
        "rounds": curves.rounds(run["curves"], generators, summary),
        "prices": prices(summary),
        "new_clients": new_clients_view(run, params.seed),
    }


def roads(summary: dict) -> dict:
    """Returns the dot plot of gains over `local`, the best road at home first.

    Returns:
        {"names", "home", "elsewhere": columns of `dot_plot`, "shown": how many rows are not
        folded, "over_clients": whether the intervals elsewhere are over clients, "has_bound":
        whether an upper bound is among them}. It has no names where `local` did not run.
    """
    comparable, _ = findings.apart(summary["methods"])
    rows = {name: entry for name, entry in comparable.items() if entry["gains"]}
    chosen = summary["choice"]["road"] if summary["choice"] else None
    names = sorted(rows, key=lambda name: (-rows[name]["over_local"], name != chosen, name))
    at_home = []
    elsewhere = []
    for name in names:
        entry = rows[name]
        ends = (entry["over_local_low"], entry["over_local_high"])
        at_home.append(Figure(entry["over_local"], *ends))
        elsewhere.append(_elsewhere(entry["elsewhere"]))
    shown = min(len(names), MOST_ROADS)
    if chosen in names:
        shown = max(shown, names.index(chosen) + 1)
    return {
        "names": names,
        "home": dot_plot.column(at_home),
        "elsewhere": dot_plot.column(elsewhere),
        "shown": shown,
        "over_clients": any(not figure.is_range for figure in elsewhere),
        "has_bound": any(rows[name]["upper_bound"] for name in names),
    }


def _elsewhere(gain: dict) -> Figure:
    """Returns the mean gain on everybody's images with its interval, or its range over clients."""
    if gain["low"] is not None:
        return Figure(gain["value"], gain["low"], gain["high"])
    values = gain["clients"].values()
    return Figure(gain["value"], min(values), max(values), is_range=True)


def clients(summary: dict) -> list[dict]:
    """Returns the clients in groups: whose gain at home is shown, who has none, who loses.

    Returns:
        [{"verdict": 1, 0, -1 or None where nothing was compared, "rows"}], without empty groups.
        In each group the largest gain comes first.
    """
    road = summary["choice"]["road"] if summary["choice"] else None
    gained = summary["methods"][road]["gains"] if road else {}
    if not gained:
        rows = [_client(client, summary, road) for client in summary["clients"]]
        return [{"verdict": None, "rows": rows}]
    groups = []
    for verdict, names in worth.by_verdict(gained).items():
        if names:
            rows = [_client(client, summary, road) for client in names]
            groups.append({"verdict": verdict, "rows": rows})
    return groups


def _client(client: str, summary: dict, road: str | None) -> dict:
    """Returns a client's row of the first screen: what the recommended road gives and costs it."""
    methods = summary["methods"]
    entry = summary["clients"][client]
    row = {"client": client, "entry": entry, "alone": None, "after": None, "gain": None}
    row |= {"elsewhere": None, "price": None}
    if "local" in methods:
        row["alone"] = methods["local"]["clients"][client]
    if road is None:
        return row
    generator = road.partition("/")[2]
    release = entry["generators"].get(generator) or entry["dp_baselines"].get(road)
    row |= {"after": methods[road]["clients"][client], "price": release}
    if methods[road]["gains"]:
        row["gain"] = methods[road]["gains"][client]
        row["elsewhere"] = methods[road]["elsewhere"]["clients"][client]
    return row


def grids(pictures: Mapping[str, Mapping], summary: dict, generators: list[str]) -> list[dict]:
    """Returns the sample grids by generator, that of the recommended road first.

    Args:
        pictures: {client: {generator: PNG bytes}}.
        summary: What `summary.build` returned.
        generators: Those of the parameters.

    Returns:
        [{"generator", "weak": whether a plan of it says that it is noise, "pictures": {client: PNG
        bytes}}], those of noise last.
    """
    road = summary["choice"]["road"] if summary["choice"] else ""
    groups = []
    for generator in generators:
        releases = [entry["generators"][generator] for entry in summary["clients"].values()]
        groups.append(
            {
                "generator": generator,
                "weak": any(release["weak"] for release in releases),
                "pictures": {client: pictures[client][generator] for client in summary["clients"]},
            }
        )
    chosen = road.partition("/")[2]
    return sorted(groups, key=lambda group: (group["weak"], group["generator"] != chosen))


def prices(summary: dict) -> dict:
    """Returns the dot plot of what an epsilon bought, one row per generator and epsilon.

    The figure is the accuracy on the global test set of a model trained on one client's set alone:
    the mean over clients with that epsilon, and their range.

    Returns:
        {"rows": [{"generator", "epsilon", "delta", "clients", "weak", "trust"}], "scores": a
        column}. `trust` says whether an epsilon holds only while some others are honest.
    """
    groups = {}
    for client, entry in summary["clients"].items():
        for generator, release in entry["generators"].items():
            key = (generator, release["epsilon"], release["delta"])
            groups.setdefault(key, []).append((client, release))
    rows = []
    figures = []
    for generator, epsilon, delta in sorted(groups):
        members = groups[generator, epsilon, delta]
        scores = [release["tstr_accuracy_global"] for _, release in members]
        scores = [score for score in scores if score is not None and score == score]
        figure = Figure(None)
        if scores:
            figure = Figure(sum(scores) / len(scores), min(scores), max(scores), is_range=True)
        figures.append(figure)
        rows.append(
            {
                "generator": generator,
                "epsilon": epsilon,
                "delta": delta,
                "clients": [client for client, _ in members],
                "weak": any(release["weak"] for _, release in members),
                "trust": any(release["trust"] for _, release in members),
            }
        )
    return {"rows": rows, "scores": dot_plot.column(figures, form=".3f", zero=False)}


def new_clients_view(run: dict, seed: int) -> dict | None:
    """Returns what the page's section on new clients needs beside the summary.

    Args:
        run: What `collect.read` returned.
        seed: Seed of the run, from which the intervals' seeds are derived.

    Returns:
        {"points", "plots", "held_out", "remarks"}, or None if no client was held out.
    """
    studies = run["new_clients"]
    if not studies:
        return None
    held_out = set()
    for study in studies.values():
        held_out.update(study["held_out"])
    points = new_clients.points(studies, seed)
    return {
        "points": points,
        "plots": {name: curves.newcomers(methods) for name, methods in points.items()},
        "held_out": sorted(held_out),
        "remarks": new_clients.remarks(studies),
    }


def class_names(cards: Mapping[str, Mapping[str, dict]]) -> list[str]:
    """Returns the names of the classes by label, as the cards have them, or an empty list."""
    for by_generator in cards.values():
        for card in by_generator.values():
            datasheet = card.get("datasheet")
            names = datasheet.get("class_names") if isinstance(datasheet, dict) else None
            if isinstance(names, list):
                return names
    return []
