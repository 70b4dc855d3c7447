"""One planted bug."""

from dataclasses import dataclass

TESTS = "tests/pipelines"


@dataclass(frozen=True)
class Mutant:
    """`old` becomes `new` in `file`; `test` (a pytest id) must fail then, and pass without it."""

    name: str
    file: str
    old: str
    new: str
    test: str
