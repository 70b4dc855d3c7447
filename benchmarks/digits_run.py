"""Keeps the table of one run of all methods on the digits, for docs/results.md.

    make compare                            # some twelve minutes
    python -m benchmarks.digits_run         # a second; reads reports/digits/summary.json

A report is private. This one may be published, because the digits are scikit-learn's.
"""

import json

from benchmarks.common import publish
from pipelines import paths
from pipelines.config import Params, load

NAME = "digits_run"
DATASET = "digits"
MEGABYTE = 1e6


def of_method(name: str, figures: dict, small: str) -> dict:
    """Returns the row of a method.

    Args:
        name: The method.
        figures: What the summary says of it.
        small: The client with the fewest records.
    """
    elsewhere = list(figures["clients_elsewhere"].values())
    return {
        "method": name,
        "mean": figures["mean_accuracy"],
        "over_local": figures["over_local"],
        "over_local_low": figures["over_local_low"],
        "over_local_high": figures["over_local_high"],
        "worst": figures["worst_accuracy"],
        "worst_client": figures["worst_client"],
        "macro_f1": figures["mean_macro_f1"],
        "small_client": figures["clients"][small],
        "shared": figures["mean_global_before"],
        "everybody": sum(elsewhere) / len(elsewhere),
        "megabytes_up": figures["bytes_up"] / MEGABYTE,
        "epsilon": figures["epsilon_max"],
        "upper_bound": figures["upper_bound"],
        "weak": figures["weak"],
    }


def smallest(params: Params, summary: dict) -> str:
    """Returns the client with the fewest records."""
    return min(params.clients, key=lambda name: summary["clients"][name]["records"])


def main() -> None:
    """Writes benchmarks/results/digits_run.json, and prints it."""
    params = load()
    summary = json.loads((paths.REPORTS / DATASET / "summary.json").read_text())
    small = smallest(params, summary)
    rows = [of_method(name, figures, small) for name, figures in summary["methods"].items()]
    publish(NAME, rows, seed=summary["seed"], small_client=small)


if __name__ == "__main__":
    main()
