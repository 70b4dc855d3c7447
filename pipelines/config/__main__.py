"""Checks the parameter files: one sentence per mistake, and exit 1. Or prints settings.

python -m pipelines.config
python -m pipelines.config show DATASET METHOD
python -m pipelines.config all-methods
"""

import argparse
from pathlib import Path

from pipelines.config import all_methods, show
from pipelines.config.files import assemble
from pipelines.config.params import checked, summary
from pipelines.config.places import PARAMS
from pipelines.errors import told_in_a_sentence


def main() -> None:
    """Runs the command that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.config", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    about = "print a method's settings for a data set, and where each value comes from"
    showing = commands.add_parser("show", help=about, description=about)
    showing.add_argument("dataset", help="as profiles/NAME.yaml is called")
    showing.add_argument(
        "method", help="a generator, pppfl, fine_tune, new_clients, a baseline or a noisy one"
    )
    about = "list all methods beside PPPFL in params.yaml"
    commands.add_parser("all-methods", help=about, description=about)
    options = parser.parse_args()
    with told_in_a_sentence():
        files = assemble(Path(PARAMS))
        params = checked(files)
        if options.command == "show":
            print("\n".join(show.lines(files, params, options.dataset, options.method)))
        elif options.command == "all-methods":
            added = all_methods.write(Path(PARAMS))
            print(f"{PARAMS} lists all methods{': added ' if added else ''}{', '.join(added)}.")
        else:
            print(summary(params))


if __name__ == "__main__":
    main()
