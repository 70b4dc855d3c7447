"""show: what every client released. verify: the chains. plan: what a grid of experiments would cost in all."""

import argparse
import os
import sys
from pathlib import Path

from pipelines.privacy import accounting
from pipelines.privacy.gaussian import Budget
from pipelines.privacy.ledger import Ledger, LedgerError


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pipelines.privacy.ledger", description=__doc__)
    parser.add_argument("command", choices=["show", "verify", "plan"])
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("FEDLENS_LEDGERS", "ledgers")))
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[10.0], help="plan: one run at each")
    parser.add_argument("--generators", type=int, default=1, help="plan: releases per run")
    parser.add_argument("--repeat", type=int, default=1, help="plan: other settings or seeds tried at each")
    arguments = parser.parse_args()
    ledgers = [Ledger(path, delta=arguments.delta) for path in sorted(arguments.folder.glob("*/*.jsonl"))]
    try:
        if arguments.command == "plan":
            plan(ledgers, arguments)
        elif not ledgers:
            print(f"No ledger in {arguments.folder}: nothing was released yet.")
        else:
            for ledger in ledgers:
                {"show": show, "verify": verify}[arguments.command](ledger)
    except LedgerError as error:
        sys.exit(f"Error: {error}")


def show(ledger: Ledger) -> None:
    """Every release with its price, and the total."""
    print(f"{_name(ledger)}: total epsilon {ledger.total_epsilon():.3f} at delta {ledger.delta:g}, per record")
    entries = ledger.entries()
    closed = {entry["fingerprint"] for entry in entries if entry["event"] == "close"}
    for entry in entries:
        if entry["event"] == "open":
            state = "made" if entry["fingerprint"] in closed else "OPEN: died, or still running"
            epsilon = entry["statement"]["epsilon"]
            print(f"  {entry['fingerprint'][:12]}  {entry['mechanism']:<12} epsilon {epsilon:<8g} {state}")


def verify(ledger: Ledger) -> None:
    print(f"{_name(ledger)}: {len(ledger.entries())} lines, the chain is whole")


def plan(ledgers: list[Ledger], arguments: argparse.Namespace) -> None:
    """The grid's total alone, and on top of what each client has released."""
    runs = arguments.generators * arguments.repeat
    costs = [{"kind": "gaussian", "mu": Budget(epsilon, arguments.delta).mu} for epsilon in arguments.epsilons] * runs
    alone = accounting.total_epsilon(costs=costs, delta=arguments.delta)
    print(f"{len(costs)} Gaussian releases: epsilon {alone:.3f} at delta {arguments.delta:g} together")
    for ledger in ledgers:
        before, after = ledger.total_epsilon(), ledger.total_epsilon(costs)
        print(f"  {_name(ledger)}: {before:.3f} now, {after:.3f} after")


def _name(ledger: Ledger) -> str:
    return f"{ledger.path.parent.name}/{ledger.path.stem}"


if __name__ == "__main__":
    main()
