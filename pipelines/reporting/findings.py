"""Finds what the page says in words: the first facts, the warnings, and who is not private.

A road is one way to learn together: images once, or noisy training round by round.
"""

from collections.abc import Iterator

from pipelines.reporting.budgets import BEYOND
from pipelines.reporting.formatting import number

UPPER_BOUND = "upper bound, not private"
VOID = "NOT PRIVATE"
COLLAPSED = "COLLAPSED"
KINDS = ("NOT PRIVATE", "Collapsed", "Lost on the way", "Took no part", "Weak plan", "Quality")

# A client hands out one of these on each road.
MODEL = "a model, every round"
IMAGES = "images, once"
NOTHING = "nothing"


def not_private(entry: dict) -> bool:
    """Returns whether a method, release or total leaves a client without a formal guarantee.

    If nothing left the client, there is nothing to mark. Formal releases that together pass what
    is claimed are no leak: what each of them costs holds.
    """
    leaves = entry.get("epsilon", entry.get("epsilon_max")) != 0 or entry.get("upper_bound", False)
    return entry["guarantee"] not in ("formal", BEYOND) and leaves


def marked(name: str, entry: dict) -> str:
    """Returns a method's name with its marks.

    One mark says that it learnt from real records without privacy: as an upper bound, or because
    a guarantee does not hold. The other says that its shared model has collapsed.

    Example:
        >>> marked("gan", {"upper_bound": False, "guarantee": "none", "epsilon": float("inf")})
        'gan (NOT PRIVATE)'
    """
    marks = []
    if entry["upper_bound"]:
        marks.append(UPPER_BOUND)
    elif not_private(entry):
        marks.append(VOID)
    if entry.get("collapsed"):
        marks.append(COLLAPSED)
    return f"{name} ({', '.join(marks)})" if marks else name


def best(summary: dict, column: str, lowest: bool = False) -> str:
    """Returns the method with the best value of a column.

    An upper bound is no rival, and the figures of a collapsed model are none.

    Args:
        summary: What `summary.build` returned.
        column: A field of its methods.
        lowest: Whether the least value is the best one.
    """
    methods = summary["methods"]
    rivals = []
    for name, figures in methods.items():
        if not figures["upper_bound"] and not figures["collapsed"]:
            rivals.append(name)
    pick = min if lowest else max
    return pick(rivals or methods, key=lambda name: methods[name][column])


def apart_last(methods: dict[str, dict]) -> list[tuple[str, dict]]:
    """Returns the methods, those that cannot be compared last.

    First come the methods as they are, then those on images whose plan said that they are noise,
    then the collapsed ones.
    """
    return sorted(methods.items(), key=lambda item: (bool(item[1]["collapsed"]), item[1]["weak"]))


def roads(summary: dict, generators: list[str], noisy: list[str]) -> list[dict]:
    """Lists the roads that ran.

    All of them have the same budgets, records and test images. For each generator there is PPPFL
    and one model on all images, then come the noisy algorithms, then each client alone.

    Args:
        summary: What `summary.build` returned.
        generators: The generators of the parameters.
        noisy: The noisy algorithms of the parameters.

    Returns:
        [{"method", "hands_out": what a client hands out, "entry": the method's figures}].
    """
    hands_out = {}
    for generator in generators:
        hands_out[f"pppfl/{generator}"] = IMAGES
        hands_out[f"pooled/{generator}"] = IMAGES
    hands_out |= dict.fromkeys(noisy, MODEL)
    hands_out["local"] = NOTHING
    rows = []
    for name, what in hands_out.items():
        if name in summary["methods"]:
            entry = summary["methods"][name]
            rows.append({"method": name, "hands_out": what, "entry": entry})
    return rows


def accounts(summary: dict) -> list[dict]:
    """Returns what stands beside the methods' epsilons: {"methods", "text"}, equal texts once."""
    methods = {}
    for name, figures in summary["methods"].items():
        if "accountant" in figures:
            text = "unit: {unit}; {relation}; sampling: {sampling}; by {accountant}"
            methods.setdefault(text.format(**figures), []).append(name)
    return [{"methods": names, "text": text} for text, names in methods.items()]


def facts(summary: dict) -> list[tuple[str, str, str]]:
    """Returns (label, figure, explanation) of what a reader asks first.

    They are figures and no verdict, for it is one run. If all models have collapsed there is none.
    """
    methods = summary["methods"]
    if all(figures["collapsed"] for figures in methods.values()):
        return []
    cards = [
        _best_at_home(summary, "Best mean at home", "mean_accuracy"),
        _best_at_home(summary, "Best worst client", "worst_accuracy"),
    ]
    name = best(summary, "mean_global_before")
    about = f"{marked(name, methods[name])}, on the global test set, before any private fine-tuning"
    cards.append(("Best shared model", number(methods[name]["mean_global_before"]), about))
    return cards + list(_smallest(summary))


def _best_at_home(summary: dict, label: str, column: str) -> tuple[str, str, str]:
    """Returns the card of the method that is best in one column of accuracies at home."""
    name = best(summary, column)
    figures = summary["methods"][name]
    mean = number(figures["mean_accuracy"])
    worst = number(figures["worst_accuracy"])
    about = f"{marked(name, figures)}: mean {mean}, worst {worst} ({figures['worst_client']})"
    return label, number(figures[column]), about


def _smallest(summary: dict) -> Iterator[tuple[str, str, str]]:
    """Yields PPPFL's figure for the client with the fewest records, one card per generator.

    No generator is chosen by its score. A collapsed model has no card, and neither has one of
    images that the plan calls noise.
    """
    sizes = {}
    for name, facts in summary["clients"].items():
        if facts["records"] is not None:
            sizes[name] = facts["records"]
    if not sizes:
        return
    client = min(sizes, key=sizes.get)
    start = summary["methods"].get("random_init", {}).get("clients", {}).get(client)
    beside = "" if start is None else f"; random_init {number(start)}"
    for name, method in summary["methods"].items():
        if name.startswith("pppfl/") and not method["collapsed"] and not method["weak"]:
            about = f"{marked(name, method)}, {sizes[client]} records{beside}"
            yield f"Smallest client, {client}", number(method["clients"][client]), about


def warnings(summary: dict) -> dict[str, dict[str, list[str]]]:
    """Returns {kind: {sentence: [CLIENT/RELEASE, ...]}}.

    The gravest kind comes first, and equal sentences stand there once.
    """
    complaints = sorted(_complaints(summary), key=lambda complaint: KINDS.index(complaint[0]))
    by_kind = {}
    for kind, text, where in complaints:
        by_kind.setdefault(kind, {}).setdefault(text, []).append(where)
    return by_kind


def _complaints(summary: dict) -> Iterator[tuple[str, str, str]]:
    """Yields (kind, sentence, where it applies) of all that a reader is warned of."""
    for name, method in summary["methods"].items():
        if method["collapsed"]:
            yield "Collapsed", method["collapsed"], name
        for client, why in method["lost"].items():
            yield "Lost on the way", f"The run went on without {client}, from {why}.", name
    for client, facts in summary["clients"].items():
        for name, release in facts["generators"].items():
            yield from _complaints_of(release, f"{client}/{name}")
        for name, release in facts["dp_baselines"].items():
            where = f"{client}/{name}"
            if release["epsilon"] == 0:
                text = "The budget buys no step: nothing of this client is in the model."
                yield "Took no part", text, where
            yield from _complaints_of(release, where)


def _complaints_of(release: dict, where: str) -> Iterator[tuple[str, str, str]]:
    """Yields the warnings of one release."""
    if not_private(release):
        yield "NOT PRIVATE", "No guarantee holds for what these releases hand out.", where
    for text in release.get("weak", []):
        yield "Weak plan", text, where
    for text in release.get("warnings", []):
        yield "Quality", text, where
