"""For organisations on machines of their own; docs/deployment.md goes through it step by step.

    python -m pipelines.federation.network.flare provision [FOLDER] --host NAME [--ports 8002 8003]
    python -m pipelines.federation.network.flare start KIT

`provision` makes the kits of a server, of all clients of params.yaml and of who submits. FOLDER is `NAME-kits` beside
this checkout, which is called NAME, where it is not given: kits hold private keys, which must not get into Git. `start`
runs a server or a client in the foreground, in this checkout, until it is ended.
"""

import argparse
import os
from pathlib import Path

from pipelines import config
from pipelines.errors import UserError, told_in_a_sentence
from pipelines.federation.network.flare import kits, processes


def main() -> None:
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
        "--ports", type=int, nargs=2, default=[8002, 8003], help="for clients, and for who submits"
    )
    start = commands.add_parser("start")
    start.add_argument("kit", type=Path)
    given = parser.parse_args()
    with told_in_a_sentence():
        if given.command == "provision":
            _provision(given)
        else:
            _start(given.kit)


def _provision(given: argparse.Namespace) -> None:
    if given.folder.exists():
        raise UserError(
            f"{given.folder} is there already: kits are made once, and hold keys. Name another folder."
        )
    made = kits.provision(
        given.folder, sorted(config.load().clients), given.host, tuple(given.ports)
    )
    print(
        f"Kits, each for its owner alone: {', '.join(sorted(kit.name for kit in made.iterdir()))}, in {made}"
    )
    print(
        f"The authority's own key is in {given.folder / kits.PROJECT / 'state'}: keep it offline, or delete it."
    )


def _start(kit: Path) -> None:
    if not (kit / "startup/sub_start.sh").exists():
        raise UserError(f"{kit} is no kit of a server or client.")
    config.load()  # a mistake in params.yaml is told here, not in a job
    kits.settle(kit)
    os.execvpe("bash", processes.command(kit), processes.environment(Path()))


if __name__ == "__main__":
    main()
