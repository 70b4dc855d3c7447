"""Prints the scores of several runs side by side, method by method.

    python -m experiments compare workspace fast-meta HEAD

A run is the name of a `dvc exp` run, any revision of Git that has a dvc.lock, or `workspace`. The
scores are those in the results of each method, as DVC's cache holds them. Nothing is fetched, and
no file is written. The scores are private, as the report's: they are for this terminal.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments import revisions
from experiments.revisions import Found
from pipelines.errors import told_in_a_sentence
from pipelines.reporting.findings import marked
from pipelines.reporting.formatting import bound, number

HEADS = ("own test part", "everybody's", "worst client", "epsilon")
LEGEND = """\
Accuracies at home, after fine-tuning. own test part: the mean over clients. everybody's: the same
models on the global test set, without a client's own class shares. epsilon: the largest of one
release."""


@dataclass(frozen=True)
class Score:
    """Holds one method's figures in one run.

    Attributes:
        at_home: Mean accuracy over the clients' own test parts.
        everybody: Mean accuracy of the same models on the global test set.
        worst: The lowest accuracy of a client on its own test part.
        worst_client: Whose it is.
        epsilon: The largest that a client's release states; infinite without privacy.
        mark: What stands behind the run's name: not private, or collapsed.
    """

    at_home: float
    everybody: float
    worst: float
    worst_client: str
    epsilon: float
    mark: str


def main(arguments: list[str] | None = None) -> None:
    """Runs the command.

    Args:
        arguments: The words after `compare`; None for those of this process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m experiments compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", metavar="RUN")
    names = list(dict.fromkeys(parser.parse_args(arguments).runs))
    with told_in_a_sentence():
        runs = {}
        for name, by_method in revisions.results(Path(), names).items():
            runs[name] = {key: score(result) for key, result in by_method.items()}
        print(LEGEND)
        print("\n".join(lines(runs)))


def score(result: Found) -> Score:
    """Returns the figures of a method, of its results.json.

    Raises:
        UserError: The file lacks a field.
    """
    content = result.content
    at_home = {}
    everybody = []
    for client, scored in content["clients"].items():
        at_home[client] = scored["after"]["accuracy"]
        everybody.append(scored.get("global_prior_off", scored["global_after"]))
    worst = min(at_home, key=at_home.get)
    health = content.get("health") or {}
    entry = {
        "upper_bound": content.get("upper_bound", False),
        "guarantee": content["guarantee"],
        "epsilon_max": float(content["epsilon_max"]),
        "collapsed": health.get("collapsed", False),
    }
    return Score(
        sum(at_home.values()) / len(at_home),
        sum(everybody) / len(everybody),
        at_home[worst],
        worst,
        entry["epsilon_max"],
        marked("", entry).strip(),
    )


def lines(runs: dict[str, dict[tuple[str, str], Score]]) -> list[str]:
    """Returns a block for each data set and method, with a line for each run that has it.

    Args:
        runs: {run: {(data set, method): its figures}}.
    """
    keys = list(dict.fromkeys(key for scores in runs.values() for key in scores))
    written = []
    for dataset in dict.fromkeys(dataset for dataset, _ in keys):
        rows = [(dataset, "run", *HEADS, "")]
        for _, method in [key for key in keys if key[0] == dataset]:
            first = method
            for name, scores in runs.items():
                rows.append((first, name, *_cells(scores.get((dataset, method)))))
                first = ""
        written += ["", *_aligned(rows)]
    return written


def _cells(score: Score | None) -> tuple[str, ...]:
    """Returns the cells of a line; a run without the method has dashes."""
    if score is None:
        return ("–", "–", "–", "–", "")
    worst = f"{score.worst:.3f} ({score.worst_client})"
    return number(score.at_home), number(score.everybody), worst, bound(score.epsilon), score.mark


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Returns rows as lines, each column as wide as its widest cell."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    written = []
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths)]
        written.append("  ".join(cells).rstrip())
    return written
