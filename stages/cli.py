"""Starts and ends every stage: arguments, parameters, and one sentence for a user's mistake."""

import argparse
import sys
from collections.abc import Callable

from pipelines import config
from pipelines.errors import UserError, told_in_a_sentence

INTERRUPTED = "Interrupted. Run `make repro` again: what is done is kept."


def main(
    run: Callable,
    *arguments: str,
    block: str = "",
    methods: Callable[[list[str]], list[str]] | None = None,
) -> None:
    """Calls `run(params, argument, ...)` with command-line arguments of these names.

    A user's mistake is printed as one sentence, and the process ends with exit 1.

    Args:
        run: The stage.
        *arguments: The names of its arguments.
        block: The parameter block whose `algorithms` an `algorithm` must be one of.
        methods: If given, there is a last argument `method`, which may be left out. It must be one
            of the names that this function returns for the baselines of the parameters. The
            first of them is the default.
    """
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    for argument in arguments:
        parser.add_argument(f"--{argument}", required=True)
    if methods:
        parser.add_argument("--method")
    names = vars(parser.parse_args())
    with told_in_a_sentence(interrupted=INTERRUPTED):
        params = config.load()
        known = {
            "dataset": params.datasets,
            "client": list(params.clients),
            "generator": params.synthesis.generators,
            "algorithm": getattr(params, block).algorithms if block else [],
        }
        if methods:
            known["method"] = methods(params.baselines.algorithms)
            if names["method"] is None:
                names["method"] = known["method"][0]
        _check_names(known, names)
        run(params, *names.values())


def _check_names(known: dict[str, list[str]], names: dict[str, str]) -> None:
    """Raises UserError if a data set, client, generator, algorithm or method is not known."""
    for argument, name in names.items():
        if argument in known and name not in known[argument]:
            raise UserError(
                f"The '--{argument}' argument must be one of {known[argument]}. "
                f"Got {name!r} instead."
            )
