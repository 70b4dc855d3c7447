"""What the page says in words: the first facts, the warnings, and who is not private."""

from collections.abc import Iterator

from pipelines.reporting.budgets import BEYOND
from pipelines.reporting.formatting import number

UPPER_BOUND, VOID, COLLAPSED = "upper bound, not private", "NOT PRIVATE", "COLLAPSED"


def not_private(entry: dict) -> bool:
    """Whether a method, release or total leaves a client without a formal guarantee. Nothing left: nothing to mark.
    Formal releases that together pass what is claimed are no leak: what each of them costs holds."""
    leaves = entry.get("epsilon", entry.get("epsilon_max")) != 0 or entry.get("upper_bound", False)
    return entry["guarantee"] not in ("formal", BEYOND) and leaves


def marked(name: str, entry: dict) -> str:
    """A method's name, and beside it whether it learnt from real records without privacy, to see how far one could get
    or because a guarantee does not hold, and whether its shared model has collapsed."""
    privacy = UPPER_BOUND if entry["upper_bound"] else VOID if not_private(entry) else ""
    marks = [mark for mark in (privacy, COLLAPSED if entry.get("collapsed") else "") if mark]
    return f"{name} ({', '.join(marks)})" if marks else name


def best(summary: dict, column: str) -> str:
    """The method with the largest value. An upper bound is no rival, and the figures of a collapsed model are none."""
    methods = summary["methods"]
    rivals = [
        name
        for name, entry in methods.items()
        if not entry["upper_bound"] and not entry["collapsed"]
    ]
    return max(rivals or methods, key=lambda name: methods[name][column])


def apart_last(methods: dict[str, dict]) -> list[tuple[str, dict]]:
    """The methods as they are, then those on images whose plan said that they are noise, then the collapsed."""
    return sorted(methods.items(), key=lambda item: (bool(item[1]["collapsed"]), item[1]["weak"]))


def accounts(summary: dict) -> list[dict]:
    """What stands beside the methods' epsilons: {"methods", "text"}, equal texts told once."""
    grouped = {}
    for name, entry in summary["methods"].items():
        if "accountant" in entry:
            text = "unit: {unit}; {relation}; sampling: {sampling}; by {accountant}".format(**entry)
            grouped.setdefault(text, []).append(name)
    return [{"methods": names, "text": text} for text, names in grouped.items()]


def facts(summary: dict) -> list[tuple[str, str, str]]:
    """(label, figure, explanation) of what a reader asks first. Figures, no verdict: it is one run."""
    methods, found = summary["methods"], []
    if all(entry["collapsed"] for entry in methods.values()):
        return []
    for label, column in (
        ("Best mean at home", "mean_accuracy"),
        ("Best worst client", "worst_accuracy"),
    ):
        name = best(summary, column)
        entry = methods[name]
        about = f"{marked(name, entry)}: mean {number(entry['mean_accuracy'])}, worst {number(entry['worst_accuracy'])}"
        found.append((label, number(entry[column]), f"{about} ({entry['worst_client']})"))
    name = best(summary, "mean_global_before")
    about = f"{marked(name, methods[name])}, on the global test set, before any private fine-tuning"
    found.append(("Best shared model", number(methods[name]["mean_global_before"]), about))
    return found + list(_smallest(summary))


def _smallest(summary: dict) -> Iterator[tuple[str, str, str]]:
    """PPPFL's figure for the client with the fewest records, one card per generator: none is chosen by its score. A
    collapsed model, and one of images that the plan calls noise, has none."""
    sizes = {
        name: entry["records"]
        for name, entry in summary["clients"].items()
        if entry["records"] is not None
    }
    if not sizes:
        return
    client = min(sizes, key=sizes.get)
    start = summary["methods"].get("random_init", {}).get("clients", {}).get(client)
    beside = "" if start is None else f"; random_init {number(start)}"
    for name, method in summary["methods"].items():
        if name.startswith("pppfl/") and not method["collapsed"] and not method["weak"]:
            found = method["clients"][client]
            about = f"{marked(name, method)}, {sizes[client]} records{beside}"
            yield f"Smallest client, {client}", number(found), about


def warnings(summary: dict) -> dict[str, dict[str, list[str]]]:
    """{kind: {sentence: [CLIENT/RELEASE, ...]}}: the gravest kind first, equal sentences told once."""
    found = {
        kind: {}
        for kind in (
            "NOT PRIVATE",
            "Collapsed",
            "Lost on the way",
            "Took no part",
            "Weak plan",
            "Quality",
        )
    }
    for kind, text, where in _complaints(summary):
        found[kind].setdefault(text, []).append(where)
    return {kind: texts for kind, texts in found.items() if texts}


def _complaints(summary: dict) -> Iterator[tuple[str, str, str]]:
    for name, method in summary["methods"].items():
        if method["collapsed"]:
            yield "Collapsed", method["collapsed"], name
        for client, why in method["lost"].items():
            yield "Lost on the way", f"The run went on without {client}, from {why}.", name
    for client, entry in summary["clients"].items():
        for name, release in (entry["generators"] | entry["dp_baselines"]).items():
            where = f"{client}/{name}"
            if name in entry["dp_baselines"] and release["epsilon"] == 0:
                yield (
                    "Took no part",
                    "The budget buys no step: nothing of this client is in the model.",
                    where,
                )
            if not_private(release):
                yield "NOT PRIVATE", "No guarantee holds for what these releases hand out.", where
            yield from (("Weak plan", text, where) for text in release.get("weak", []))
            yield from (("Quality", text, where) for text in release.get("warnings", []))
