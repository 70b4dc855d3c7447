"""Figures as text."""

import math


def number(value, form: str = ".3f") -> str:
    """A figure as text: a dash for nothing, the sign for an infinite one."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return "∞" if float(value) == math.inf else format(float(value), form)


def bound(value, digits: int = 4) -> str:
    """An epsilon or delta as text, rounded up: a promise must not shrink on the page."""
    value = float(value)
    if value in (0.0, math.inf):
        return number(value, "g")
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return format(math.ceil(value / unit - 1e-6) * unit, f".{digits}g")


def amount(count) -> str:
    """A number of bytes as text, in steps of a thousand; a dash where it is not known."""
    if count is None:
        return number(None)
    unit = next((step for step in range(4) if count < 999.5 * 1000**step), 4)
    return f"{count / 1000**unit:.3g} {('B', 'kB', 'MB', 'GB', 'TB')[unit]}"
