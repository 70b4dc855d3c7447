"""report: writes summary, tables, pictures and one page over all clients' private scores.

Its output is private.
"""

import shutil

from pipelines import paths
from pipelines.config import Params
from pipelines.datasets.salting import add_salt_file
from pipelines.files import new_folder
from pipelines.reporting import gains, new_clients, page, tables
from pipelines.reporting.comparisons import sentences
from pipelines.reporting.findings import marked
from pipelines.reporting.formatting import number
from stages.cli import main

# of a data set, which takes some 2.5 MB: how well a picture is packed follows private scores
LEAST_BYTES = 1 << 23


def run(params: Params) -> None:
    """Writes the report and prints its main figures."""
    with new_folder(paths.REPORTS) as out:
        summaries = page.write(out, params)
        # the last `make audit`, which this folder would otherwise lose
        for name in ("audit.json", "audit.png"):
            if (paths.AUDIT / name).exists():
                shutil.copy(paths.AUDIT / name, out / name)
        add_salt_file(out, "reports", "all-clients", LEAST_BYTES * len(params.datasets))
    for summary in summaries:
        _print(summary)
        print("\n".join(gains.sentences(summary, params.synthesis.generators)))
    print(
        f"{paths.REPORTS / 'index.html'}: the experimenter's view of private scores, not to be "
        "shared"
    )


def _print(summary: dict) -> None:
    """Prints the methods of a data set, their comparisons and what its new clients came to."""
    for row in tables.methods(summary):
        name = f"{row['dataset']} {marked(row['method'], row):<20}"
        print(
            f"{name} accuracy {row['mean_accuracy']:.3f} "
            f"[{number(row['mean_accuracy_low'])}, {number(row['mean_accuracy_high'])}], "
            f"worst {row['worst_accuracy']:.3f} ({row['worst_client']})"
        )
    for why in summary["left_out"].values():
        print(f"{summary['dataset']} {why}")
    print("\n".join(sentences(summary["comparisons"], summary["methods"])))
    for sentence in new_clients.sentences(summary["new_clients"]):
        print(f"New clients: {sentence}")


if __name__ == "__main__":
    main(run)
