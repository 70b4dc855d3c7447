"""Writes in words what the next `dvc repro` would release."""

from collections.abc import Sequence

from pipelines import words
from pipelines.plan.rows import NEW, Row
from pipelines.release_totals import Total

HEAD = (
    "What the next `dvc repro` would release. A client's total holds all its releases of the data "
    "set up to that line."
)


def lines(dataset: str, rows: Sequence[Row], totals: dict[str, Total]) -> list[str]:
    """Returns a block of lines for each client of a data set; equal blocks are written once.

    Args:
        dataset: The data set's name.
        rows: Of all clients, in the order of the releases.
        totals: {client: its total before the first of them}.
    """
    blocks = {}
    for client, total in totals.items():
        of_client = [row for row in rows if row.client == client]
        blocks[client] = "\n".join([total.standing, *table(of_client)])
    return [f"{dataset}, {block}" for block in words.by_client(blocks)]


def table(rows: Sequence[Row]) -> list[str]:
    """Returns one client's rows as a table."""
    cells = [("release", "", "epsilon", "delta", "total after")]
    for row in rows:
        mark = f"  ABOVE THE CAP of {row.total.cap:g}" if row.is_refused else ""
        total = f"{row.total.in_words}{mark}"
        cells.append((row.name, row.state, f"{row.epsilon:.4g}", f"{row.delta:g}", total))
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    written = []
    for name, state, epsilon, delta, total in cells:
        written.append(
            f"  {name:<{widths[0]}}  {state:<{widths[1]}}  {epsilon:>{widths[2]}}  "
            f"{delta:>{widths[3]}}  {total}"
        )
    return written


def summary(dataset: str, rows: Sequence[Row]) -> list[str]:
    """Returns what a run spends of a data set.

    That is how many releases are new, whom they trust, and where a cap ends the run.
    """
    counts = {row.client: 0 for row in rows}
    for row in rows:
        counts[row.client] += row.state == NEW
    if not any(counts.values()):
        return [f"{dataset}: no release is new, so that `dvc repro` spends nothing."]
    phrases = {}
    for client, count in counts.items():
        phrases[client] = f"{count} new release{'' if count == 1 else 's'}"
    written = [f"{dataset}, {line}" for line in words.by_client(phrases)]
    return [*written, *_trusted(dataset, rows), *_refusal(dataset, rows)]


def _trusted(dataset: str, rows: Sequence[Row]) -> list[str]:
    """Returns a sentence for each group of clients whose new release trusts somebody."""
    clients = {}
    for row in rows:
        if row.state == NEW and row.trust:
            clients.setdefault((row.name, row.trust), []).append(row.client)
    return [
        f"{dataset}, {words.names(group)}, {name}: {trust}"
        for (name, trust), group in clients.items()
    ]


def _refusal(dataset: str, rows: Sequence[Row]) -> list[str]:
    """Returns a sentence for each client whose cap refuses the first stage that is refused."""
    refused = [row for row in rows if row.is_refused]
    written = []
    for row in refused:
        if row.stage == refused[0].stage:
            written.append(
                f"The ledger of {dataset}/{row.client} would refuse {row.name}, which brings its "
                f"total to epsilon {row.total.in_words} at delta {row.total.delta:g}, above its "
                f"lifetime_epsilon of {row.total.cap:g}."
            )
    if refused:
        written.append(f"`dvc repro` would end there, at {refused[0].stage}.")
    return written
