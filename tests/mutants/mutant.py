"""Describes one planted bug."""

from dataclasses import dataclass

TESTS = "tests/pipelines"


@dataclass(frozen=True)
class Mutant:
    """Says that `old` becomes `new` in `file`.

    The test (a pytest id) must then fail, and pass without the change.
    """

    name: str
    file: str
    old: str
    new: str
    test: str
