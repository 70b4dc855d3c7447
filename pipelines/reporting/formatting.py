"""Writes numbers as text for pages and printed lines."""

import math

BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")


def number(value: float | None, form: str = ".3f") -> str:
    """Returns a number as text: a dash for a missing one, a sign for an infinite one.

    Example:
        >>> number(0.98765), number(None), number(float("inf"))
        ('0.988', '–', '∞')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return "∞" if float(value) == math.inf else format(float(value), form)


def bound(value: float | str, digits: int = 4) -> str:
    """Returns an epsilon or delta as text, rounded up.

    A rounded promise must not be smaller than the promise.

    Example:
        >>> bound(15.4641), bound(1e-5)
        ('15.47', '1e-05')
    """
    value = float(value)
    if value in (0.0, math.inf):
        return number(value, "g")
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return format(math.ceil(value / unit - 1e-6) * unit, f".{digits}g")


def amount(count: float | None) -> str:
    """Returns a number of bytes as text with three digits; a dash if it is not known.

    Units are steps of a thousand.

    Example:
        >>> amount(999), amount(31_400_000)
        ('999 B', '31.4 MB')
    """
    if count is None:
        return number(None)
    step = 0
    while step < len(BYTE_UNITS) - 1 and count >= 999.5 * 1000**step:
        step += 1
    return f"{count / 1000**step:.3g} {BYTE_UNITS[step]}"
