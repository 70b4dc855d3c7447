"""Starts and ends every stage: arguments, parameters, and one sentence for a user's mistake."""

import argparse
import sys
from collections.abc import Callable

from pipelines import config
from pipelines.errors import UserError, told_in_a_sentence


def main(run: Callable, *arguments: str, block: str = "") -> None:
    """Calls `run(params, argument, ...)` with command-line arguments of these names.

    A user's mistake is printed as one sentence, and the process ends with exit 1.

    Args:
        run: The stage.
        *arguments: The names of its arguments.
        block: The parameter block whose `algorithms` an `algorithm` must be one of.
    """
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    for argument in arguments:
        parser.add_argument(f"--{argument}", required=True)
    names = vars(parser.parse_args())
    with told_in_a_sentence():
        params = config.load()
        _check_names(params, names, block)
        run(params, *map(names.get, arguments))


def _check_names(params: config.Params, names: dict[str, str], block: str) -> None:
    """Raises UserError if a data set, client, generator or algorithm is not in the parameters."""
    known = {
        "dataset": params.datasets,
        "client": list(params.clients),
        "generator": params.synthesis.generators,
        "algorithm": getattr(params, block).algorithms if block else [],
    }
    for argument, name in names.items():
        if argument in known and name not in known[argument]:
            raise UserError(
                f"The '--{argument}' argument must be one of {known[argument]}. "
                f"Got {name!r} instead."
            )
