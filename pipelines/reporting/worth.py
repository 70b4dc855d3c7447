"""Puts in words what one method is worth to each client, and which gains are shown and which not.

A gain at home is shown where its paired interval lies above 0 (`comparisons.verdict`). On everybody's
images there is no interval over images: what each client gains is told as it is.
"""

from collections.abc import Mapping

from pipelines.reporting.comparisons import verdict
from pipelines.reporting.formatting import number
from pipelines.words import names

# With more clients that gain than these, they are named in one list, without their figures.
ONE_BY_ONE = 3


def by_verdict(gains: Mapping[str, dict]) -> dict[int, list[str]]:
    """Returns the clients whose gain at home is shown (1), whose loss is (-1), and the others (0).

    In each list the client with the largest gain comes first.

    Args:
        gains: What `client_gains.at_home` returned.
    """
    groups = {1: [], 0: [], -1: []}
    for client in sorted(gains, key=lambda name: (-gains[name]["value"], name)):
        groups[verdict(gains[client])].append(client)
    return groups


def headline(entry: dict) -> str:
    """Returns in a few words whether to federate by one method.

    Args:
        entry: The method's figures of the summary.
    """
    groups = by_verdict(entry["gains"])
    mean = verdict(_over_local(entry))
    for_others = shown_elsewhere(entry["elsewhere"])
    elsewhere_gain = f"{_signed(entry['elsewhere']['value'])} elsewhere" if for_others else ""
    if mean == 1:
        but = f", but {names(groups[-1])} not" if groups[-1] else ""
        parts = [f"Yes: {_signed(entry['over_local'])} at home{but}", elsewhere_gain]
    elif mean == -1:
        parts = [f"Not at home: {_signed(entry['over_local'])}", elsewhere_gain]
    elif groups[1]:
        parts = [f"Yes, for {names(groups[1])} at home", elsewhere_gain]
    elif for_others:
        parts = [elsewhere_gain, "at home no difference is shown"]
    else:
        parts = ["No gain is shown"]
    return "; ".join(filter(None, parts))


def shown_elsewhere(gain: dict) -> bool:
    """Returns whether clients gain on everybody's images: in the mean, by more than the interval.

    With too few clients for an interval, each of them must gain.

    Args:
        gain: What `client_gains.elsewhere` returned.
    """
    if gain["low"] is None:
        return min(gain["clients"].values()) > 0
    return gain["low"] > 0


def at_home(entry: dict, alone: dict) -> list[str]:
    """Returns who gains at home, who loses, and for whom no difference is shown.

    Args:
        entry: The method's figures of the summary.
        alone: The figures of `local`.
    """
    gains = entry["gains"]
    groups = by_verdict(gains)
    sentences = []
    for sign, verb in ((1, "gains"), (-1, "loses")):
        group = groups[sign]
        if len(group) > ONE_BY_ONE:
            many = verb.removesuffix("s")
            sentences.append(
                f"{len(group)} of {len(gains)} clients {many} at home: {names(group)}."
            )
            continue
        for client in group:
            before = number(alone["clients"][client])
            after = number(entry["clients"][client])
            change = _signed_with_interval(gains[client])
            sentences.append(f"{client} {verb} at home: {before} to {after} ({change}).")
    if groups[0]:
        level = [client for client in gains if client in groups[0]]
        sentences.append(f"For {names(level)} no difference is shown at home.")
    mean = _signed_with_interval(_over_local(entry))
    return [*sentences, f"Mean over clients at home: {mean}."]


def elsewhere(gain: dict) -> str:
    """Returns what the clients gain on everybody's images.

    Args:
        gain: What `client_gains.elsewhere` returned.
    """
    gains = gain["clients"]
    least = min(gains, key=gains.get)
    most = max(gains, key=gains.get)
    ahead = sum(value > 0 for value in gains.values())
    who = f"all {len(gains)}" if ahead == len(gains) else f"{ahead} of {len(gains)}"
    text = f"Elsewhere, on everybody's images, {who} clients gain: {_signed(gain['value'])} in the mean"
    if gain["low"] is not None:
        text += f" [{_signed(gain['low'])}, {_signed(gain['high'])} over clients]"
    if gains[least] < gains[most]:
        text += f", {_signed(gains[least])} ({least}) to {_signed(gains[most])} ({most})"
    few = " Fewer than six clients have no interval there." if gain["low"] is None else ""
    return f"{text}.{few}"


def _over_local(entry: dict) -> dict:
    """Returns a method's mean gain over training alone, as `verdict` takes it."""
    return {
        "value": entry["over_local"],
        "low": entry["over_local_low"],
        "high": entry["over_local_high"],
        "differing": entry["over_local_differing"],
    }


def _signed_with_interval(gain: dict) -> str:
    """Returns a difference with its interval."""
    if gain["low"] is None:
        return f"{_signed(gain['value'])}, no interval"
    return f"{_signed(gain['value'])} [{_signed(gain['low'])}, {_signed(gain['high'])}]"


def _signed(value: float) -> str:
    return number(value, "+.3f")
