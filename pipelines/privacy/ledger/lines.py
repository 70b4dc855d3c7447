"""Checks that a line of a ledger holds what is needed to add it up."""

import json
import math

EVENTS = {
    "open": {
        "fingerprint": str,
        "mechanism": str,
        "version": int,
        "parameters": dict,
        "data": str,
        "cost": dict,
        "statement": dict,
    },
    "close": {"fingerprint": str, "cost": dict, "statement": dict},
}
COSTS = {
    "gaussian": ("mu",),
    "sampled_gaussian": ("schedule",),
    "renyi": ("order", "rdp"),
    "none": (),
}


def parsed(line: bytes) -> dict:
    """Returns the mapping that a line holds.

    Raises:
        ValueError: The line holds something else. The text says what it is.
    """
    try:
        entry = json.loads(line.decode())
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(entry, dict):
        raise ValueError("no mapping")
    return entry


def check(entry: dict) -> None:
    """Checks that an entry has all fields, in the form that adding it up needs.

    Raises:
        ValueError: A field is absent or has another form. The text says which.
    """
    fields = EVENTS.get(_word(entry.get("event")))
    if fields is None:
        raise ValueError(
            f"'event' must be one of {', '.join(EVENTS)}, and is {entry.get('event')!r}"
        )
    for name, kind in fields.items():
        if not isinstance(entry.get(name), kind):
            raise ValueError(f"'{name}' is absent or of another kind")
    _check_cost(entry["cost"])
    statement = entry["statement"]
    if "delta" in statement and not (_is_number(statement["delta"]) and 0 < statement["delta"] < 1):
        raise ValueError("'delta' of its statement must be in (0, 1)")
    if "epsilon" in statement and not _is_number(statement["epsilon"]):
        raise ValueError("'epsilon' of its statement must be a number")


def _check_cost(cost: dict) -> None:
    """Checks the cost of an entry.

    Raises:
        ValueError: Its kind is unknown, or a number of it is absent or of another kind.
    """
    names = COSTS.get(_word(cost.get("kind")))
    if names is None:
        raise ValueError(
            f"'kind' of its cost must be one of {', '.join(COSTS)}, and is {cost.get('kind')!r}"
        )
    for name in names:
        whole = _is_schedule(cost.get(name)) if name == "schedule" else _is_finite(cost.get(name))
        if not whole:
            raise ValueError(f"'{name}' of its cost is absent or of another kind")


def _is_schedule(value: object) -> bool:
    """Returns whether a value is a list of rows [noise multiplier, rate, steps]."""
    rows = value if isinstance(value, list) else [None]
    return all(
        isinstance(row, list) and len(row) == 3 and all(map(_is_finite, row)) for row in rows
    )


def _is_finite(value: object) -> bool:
    """Returns whether a value is a finite number."""
    return _is_number(value) and math.isfinite(value)


def _is_number(value: object) -> bool:
    """Returns whether a value is a number, which may be infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def _word(value: object) -> str:
    """Returns a value that can be looked up in a mapping: a list, for one, cannot."""
    return value if isinstance(value, str) else ""
