"""Reads the command line of `python -m pipelines.privacy.ledger`."""

import argparse
from collections.abc import Callable
from pathlib import Path

from pipelines.privacy import ledger_folder
from pipelines.privacy.ledger_folder import LedgerError

# releases of one kind in a plan
MOST = 10**6
# delta of which floats still hold the inverse
LEAST = 1e-300


def parsed(description: str, arguments: list[str] | None) -> argparse.Namespace:
    """Returns the options of the command.

    Args:
        description: The text that --help shows.
        arguments: The words after the command's name; None for those of this process.

    Raises:
        LedgerError: A number is none, or lies outside its range.
    """
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.privacy.ledger", description=description
    )
    parser.add_argument("command", choices=["show", "verify", "plan"])
    parser.add_argument(
        "--folder", type=Path, help=f"of ledgers; else {ledger_folder.VARIABLE}, or `ledgers`"
    )
    delta = _number("delta", float, f"a float in [{LEAST:g}, 1)", lambda value: LEAST <= value < 1)
    parser.add_argument("--delta", type=delta, help="of all totals; else each client's own")
    epsilon = _number("epsilons", float, "a float in (0, inf]", lambda value: value > 0)
    parser.add_argument(
        "--epsilons", type=epsilon, nargs="+", default=[10.0], help="plan: one run at each"
    )
    for name, meaning in (
        ("generators", "releases per run"),
        ("repeat", "other settings or seeds tried at each"),
    ):
        count = _number(name, int, f"an int in [1, {MOST}]", lambda value: 1 <= value <= MOST)
        parser.add_argument(f"--{name}", type=count, default=1, help=f"plan: {meaning}")
    return parser.parse_args(arguments)


def _number(
    name: str, kind: type, rule: str, holds: Callable[[float], bool]
) -> Callable[[str], float]:
    """Returns a function that turns an argument's text into its value, and refuses others."""

    def value_of(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not holds(value):
            raise LedgerError(f"The '--{name}' argument must be {rule}. Got {text!r} instead.")
        return value

    return value_of
