"""Tells what the next `dvc repro` would release, and what that costs each client.

python -m pipelines.plan              what would be released; `make plan` runs it
python -m pipelines.plan remaining    how many more releases each client's cap leaves room for

The first ends with exit 1 where a client's cap would refuse a release. Nothing is spent, and no
file is written.
"""

import argparse
import signal
import sys

from pipelines import config, release_totals, releases
from pipelines.config import Params
from pipelines.errors import told_in_a_sentence
from pipelines.plan import announcement, records, remaining, rows
from pipelines.plan.rows import Row
from pipelines.privacy.ledger import Ledger
from pipelines.training import public_basis


def main(arguments: list[str] | None = None) -> None:
    """Runs the command.

    Args:
        arguments: The words after the command's name; None for those of this process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.plan",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", nargs="?", choices=["remaining"])
    options = parser.parse_args(arguments)
    with told_in_a_sentence(), releases.as_user_error(), public_basis.storing_nothing():
        params = config.load()
        if options.command == "remaining":
            _remaining(params)
            return
        print(announcement.HEAD)
        refused = [_announced(params, dataset) for dataset in params.datasets]
    if any(refused):
        sys.exit(1)


def _remaining(params: Params) -> None:
    """Prints how many more releases each client's cap leaves room for."""
    print(remaining.HEAD)
    for dataset in params.datasets:
        print()
        print("\n".join(remaining.lines(params, dataset, _ledgers(params, dataset))))


def _announced(params: Params, dataset: str) -> bool:
    """Prints what is planned for a data set, and returns True if a ledger would refuse a part."""
    ledgers = _ledgers(params, dataset)
    totals = {client: release_totals.after(ledger) for client, ledger in ledgers.items()}
    planned = _rows(params, dataset, ledgers)
    print()
    for method in params.dp_baselines.algorithms:
        if why := params.left_out(dataset, method):
            print(why)
    print("\n".join(announcement.lines(dataset, planned, totals)))
    print("\n".join(announcement.summary(dataset, planned)))
    return any(row.is_refused for row in planned)


def _rows(params: Params, dataset: str, ledgers: dict[str, Ledger]) -> list[Row]:
    """Returns the rows of a data set. Records that are not at hand are taken for new ones."""
    if records.at_hand(params, dataset):
        return list(rows.of(params, dataset, ledgers, records.dealt(params, dataset)))
    print(f"\n{dataset}: its images are not at hand yet, so that each release counts as new.")
    return list(rows.of(params, dataset, ledgers, records.nobodys(params)))


def _ledgers(params: Params, dataset: str) -> dict[str, Ledger]:
    return {client: releases.ledger_of(params, dataset, client) for client in params.clients}


if __name__ == "__main__":
    # a reader that has seen enough, such as `head`, is no error
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main()
