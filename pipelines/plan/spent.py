"""Tells where the report lies, and what each client has spent of what cap, as `make repro` ends.

python -m pipelines.plan.spent
"""

import sys

from pipelines import config, paths, release_totals, releases, words
from pipelines.config import Params
from pipelines.errors import told_in_a_sentence


def main() -> None:
    """Runs the command, which takes no argument."""
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    with told_in_a_sentence(), releases.as_user_error():
        print("\n".join(lines(config.load())))


def lines(params: Params) -> list[str]:
    """Returns what is printed.

    Args:
        params: The parameters of the project in the working directory.

    Raises:
        LedgerError: A ledger was tampered with.
    """
    written = []
    page = paths.REPORTS / "index.html"
    # a page of an earlier run may be of other data sets
    is_of_these = all((paths.REPORTS / dataset).exists() for dataset in params.datasets)
    if page.exists() and is_of_these:
        written.append(f"The report, which is private: {page}")
    written.append("What each client has spent, all its releases together:")
    for dataset in params.datasets:
        standings = {}
        for client in params.clients:
            ledger = releases.ledger_of(params, dataset, client)
            standings[client] = release_totals.after(ledger).standing
        written += [f"  {dataset}, {line}" for line in words.by_client(standings)]
    return written


if __name__ == "__main__":
    main()
