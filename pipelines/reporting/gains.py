"""Says what federating is worth to each client: more than training alone, and where it is not.

A gain is PPPFL's accuracy less that of `local`, which sees nothing but the client's records.
On a client's own test part both have their class shares. On everybody's images, the global test set,
both are read without them: of `local` they are taken off.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pipelines.reporting.formatting import number
from pipelines.words import names

ALONE = "local"
UNTRAINED = "random_init"


class Gains(NamedTuple):
    """Holds what one method is worth to each client, less training alone.

    Attributes:
        at_home: {client: difference on its own test part}.
        elsewhere: {client: difference on the global test set}.
    """

    at_home: dict[str, float]
    elsewhere: dict[str, float]


def of_method(method: str, methods: Mapping[str, dict]) -> Gains | None:
    """Returns what a method is worth to each client; None if `local` did not run, or it collapsed.

    Args:
        method: Name of the method.
        methods: The methods of the summary.
    """
    if ALONE not in methods or methods[method]["collapsed"]:
        return None
    differences = []
    for figure in ("clients", "clients_elsewhere"):
        ours = methods[method][figure]
        alone = methods[ALONE][figure]
        differences.append({client: ours[client] - alone[client] for client in ours})
    return Gains(*differences)


def sentences(summary: dict, generators: list[str]) -> list[str]:
    """Returns for each generator who gains how much with PPPFL, and who gains nothing.

    Args:
        summary: What `summary.build` returned.
        generators: The generators of the parameters.
    """
    texts = []
    for generator in generators:
        method = f"pppfl/{generator}"
        gains = of_method(method, summary["methods"])
        if gains is None:
            continue
        at_home = _verdict(gains.at_home, "on its own images", "on their own images")
        elsewhere = _verdict(gains.elsewhere, "on everybody's images", "on everybody's images")
        parts = [f"With {method}, {at_home}", elsewhere[0].upper() + elsewhere[1:]]
        newcomers = _newcomers(summary["new_clients"].get(generator, []))
        texts.append(" ".join(filter(None, [*parts, newcomers])))
    return texts


def _verdict(differences: dict[str, float], singular: str, plural: str) -> str:
    """Returns who gains, the mean, and who does not.

    Args:
        differences: {client: gain}.
        singular: On which images, of one client.
        plural: The same of several.
    """
    mean = sum(differences.values()) / len(differences)
    behind = sorted(
        (client for client, gain in differences.items() if gain <= 0), key=differences.get
    )
    if not behind:
        least = min(differences, key=differences.get)
        figures = f"{_signed(mean)} in the mean, {least} least with {_signed(differences[least])}"
        return f"each client gains {singular} ({figures})."
    ahead = len(differences) - len(behind)
    who = f"{ahead} of {len(differences)} clients gain" if ahead else "nobody gains"
    least = behind[0]
    verb = "gains" if len(behind) == 1 else "gain"
    return (
        f"{who} {plural if ahead else singular} ({_signed(mean)} in the mean); {names(behind)} {verb} "
        f"nothing there, {least} least with {_signed(differences[least])}."
    )


def _newcomers(entries: list[dict]) -> str:
    """Returns what a newcomer gains over its labels alone, with the fewest and the most of them."""
    over_untrained = [entry for entry in entries if entry["rival"] == UNTRAINED]
    if not over_untrained:
        return ""
    ends = {entry["labels"]: entry for entry in (over_untrained[0], over_untrained[-1])}
    parts = []
    for labels, entry in ends.items():
        parts.append(f"{_signed(entry['difference'])} with {labels} labels")
    return f"A newcomer gains {' and '.join(parts)} on its own images."


def _signed(value: float) -> str:
    return number(value, "+.3f")
