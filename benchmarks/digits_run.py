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


def of_method(name: str, found: dict, small: str) -> dict:
    """Returns the row of a method.

    Args:
        name: The method.
        found: What the summary says of it.
        small: The client with the fewest records.
    """
    elsewhere = list(found["clients_elsewhere"].values())
    return {
        "method": name,
        "mean": found["mean_accuracy"],
        "over_local": found["over_local"],
        "over_local_low": found["over_local_low"],
        "over_local_high": found["over_local_high"],
        "worst": found["worst_accuracy"],
        "worst_client": found["worst_client"],
        "macro_f1": found["mean_macro_f1"],
        "small_client": found["clients"][small],
        "shared": found["mean_global_before"],
        "everybody": sum(elsewhere) / len(elsewhere),
        "megabytes_up": found["bytes_up"] / MEGABYTE,
        "epsilon": found["epsilon_max"],
        "upper_bound": found["upper_bound"],
        "weak": found["weak"],
    }


def smallest(params: Params, summary: dict) -> str:
    """Returns the client with the fewest records."""
    return min(params.clients, key=lambda name: summary["clients"][name]["records"])


def main() -> None:
    """Writes benchmarks/results/digits_run.json, and prints it."""
    params = load()
    summary = json.loads((paths.REPORTS / DATASET / "summary.json").read_text())
    small = smallest(params, summary)
    rows = [of_method(name, found, small) for name, found in summary["methods"].items()]
    publish(NAME, rows, seed=summary["seed"], small_client=small)


if __name__ == "__main__":
    main()
