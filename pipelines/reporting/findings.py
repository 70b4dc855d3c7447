"""Finds what the page says in words: the warnings, who is not private, and what is handed out."""

from collections.abc import Container, Iterator

from pipelines.methods import AT_HOME
from pipelines.reporting.budgets import BEYOND

UPPER_BOUND = "upper bound, not private"
VOID = "NOT PRIVATE"
COLLAPSED = "COLLAPSED"
KINDS = ("NOT PRIVATE", "Collapsed", "Lost on the way", "Took no part", "Weak plan", "Quality")
# A reader must see these at once.
GRAVE = ("NOT PRIVATE", "Collapsed")

# A client hands out one of these on each road.
MODEL = "a model, every round"
IMAGES = "images, once"
NOTHING = "nothing"
# Methods that need of a client its images alone.
IMAGES_ALONE = ("pppfl", "pooled", "best_single", "own_synthetic")


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

    An upper bound is no rival, and the figures of a collapsed model, or of noise, are none.

    Args:
        summary: What `summary.build` returned.
        column: A field of its methods.
        lowest: Whether the least value is the best one.
    """
    methods = summary["methods"]
    rivals = []
    for name, figures in methods.items():
        if not any(map(figures.get, ("upper_bound", "collapsed", "weak"))):
            rivals.append(name)
    pick = min if lowest else max
    return pick(rivals or methods, key=lambda name: methods[name][column])


def apart(methods: dict[str, dict]) -> tuple[dict[str, dict], dict[str, dict]]:
    """Returns the methods that can be compared, and the others.

    The others have collapsed, or are on images whose plan said that they are noise.

    Args:
        methods: The methods of the summary.
    """
    comparable = {}
    others = {}
    for name, entry in methods.items():
        group = others if entry["collapsed"] or entry["weak"] else comparable
        group[name] = entry
    return comparable, others


def handed_out(method: str, noisy: Container[str]) -> str:
    """Returns what a client hands out for a method.

    Args:
        method: Name of the method.
        noisy: The noisy algorithms of the parameters.

    Example:
        >>> handed_out("pooled/datalens", ["dpsgd"]), handed_out("dpsgd", ["dpsgd"])
        ('images, once', 'a model, every round')
    """
    algorithm = method.partition("/")[0]
    if algorithm in AT_HOME:
        return NOTHING
    if algorithm in IMAGES_ALONE and method not in noisy:
        return IMAGES
    return MODEL


def accounts(summary: dict) -> list[dict]:
    """Returns what stands beside the methods' epsilons: {"methods", "text"}, equal texts once."""
    methods = {}
    for name, figures in summary["methods"].items():
        if "accountant" in figures:
            text = "unit: {unit}; {relation}; sampling: {sampling}; by {accountant}."
            sentences = [text.format(**figures), *figures.get("trust", [])]
            methods.setdefault(" ".join(sentences), []).append(name)
    return [{"methods": names, "text": text} for text, names in methods.items()]


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
