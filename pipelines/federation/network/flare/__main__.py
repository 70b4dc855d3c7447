"""Makes kits and starts participants, for organisations on their own machines.

docs/deployment.md goes through it step by step.

    python -m pipelines.federation.network.flare provision [FOLDER] --host NAME [--ports 8002 8003]
    python -m pipelines.federation.network.flare start KIT

`provision` makes the kits of a server, of all clients of params.yaml and of the submitter. FOLDER
is `NAME-kits` beside this checkout, which is called NAME, if no FOLDER is given. Kits hold private
keys, which must not get into Git. `start` runs a server or a client in the foreground, in this
checkout, until it is ended.
"""

import argparse
import os
from pathlib import Path

from pipelines import config
from pipelines.errors import UserError, told_in_a_sentence
from pipelines.federation.network.flare import kits, processes


def main() -> None:
    """Runs the command that the command line names."""
    arguments = _parser().parse_args()
    with told_in_a_sentence():
        if arguments.command == "provision":
            _provision(arguments)
        else:
            _start(arguments.kit)


def _parser() -> argparse.ArgumentParser:
    beside = processes.ROOT.with_name(f"{processes.ROOT.name}-kits")
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.federation.network.flare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    provision = commands.add_parser("provision")
    provision.add_argument(
        "folder", type=Path, nargs="?", default=beside, help=f"for the kits; {beside} if left out"
    )
    provision.add_argument(
        "--host", required=True, help="name under which clients reach the server"
    )
    provision.add_argument(
        "--ports",
        type=int,
        nargs=2,
        default=[8002, 8003],
        help="for clients, and for the submitter",
    )
    start = commands.add_parser("start")
    start.add_argument("kit", type=Path)
    return parser


def _provision(arguments: argparse.Namespace) -> None:
    """Makes the kits, and prints where they and the authority's key are."""
    folder = arguments.folder
    if folder.exists():
        raise UserError(
            f"{folder} is there already: kits are made once, and hold keys. Name another folder."
        )
    clients = sorted(config.load().clients)
    made = kits.provision(folder, clients, arguments.host, tuple(arguments.ports))
    names = ", ".join(sorted(kit.name for kit in made.iterdir()))
    print(f"Kits, each for its owner alone: {names}, in {made}")
    state = folder / kits.PROJECT / "state"
    print(f"The authority's own key is in {state}: keep it offline, or delete it.")


def _start(kit: Path) -> None:
    """Replaces this process by the participant's."""
    if not (kit / "startup/sub_start.sh").exists():
        raise UserError(f"{kit} is no kit of a server or client.")
    # a mistake in params.yaml is reported here, and not in a job
    config.load()
    kits.set_storage(kit)
    os.execvpe("bash", processes.command(kit), processes.environment(Path()))


if __name__ == "__main__":
    main()
