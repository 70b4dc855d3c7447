"""How every stage starts and ends: arguments, parameters, one sentence and exit 1 for a user's mistake."""

import argparse
import sys
from collections.abc import Callable

from pipelines import config
from pipelines.errors import UserError, told_in_a_sentence


def main(run: Callable, *arguments: str, block: str = "") -> None:
    """Calls `run(params, argument, ...)` with the named command-line arguments; an `algorithm` must be of `block`'s."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    for argument in arguments:
        parser.add_argument(f"--{argument}", required=True)
    names = vars(parser.parse_args())
    with told_in_a_sentence():
        params = config.load()
        _check_names(params, names, block)
        run(params, *(names[argument] for argument in arguments))


def _check_names(params: config.Params, names: dict[str, str], block: str) -> None:
    known = {
        "dataset": params.datasets,
        "client": list(params.clients),
        "generator": params.synthesis.generators,
        "algorithm": getattr(params, block).algorithms if block else [],
    }
    for argument, name in names.items():
        if argument in known and name not in known[argument]:
            raise UserError(
                f"The '--{argument}' argument must be one of {known[argument]}. Got {name!r} instead."
            )
