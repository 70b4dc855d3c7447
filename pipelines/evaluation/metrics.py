"""The table of a classifier's metrics, and their values from predictions and over clients.

Results, curves, summary, report and the experiments' tables iterate METRICS. A new metric is one
entry here and its test. The first entry, accuracy, is the main one: a method's worst client, its
intervals and the selection of a round are of accuracy alone.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Metric(NamedTuple):
    """Describes a figure of a classifier on one set of labelled images.

    Attributes:
        name: Key in results.json and quality.json. Other keys and columns are made from it:
            `mean_NAME`, `NAME_after`, `selected_NAME`, `tstr_NAME`, `released_NAME`.
        function: Takes predicted and true classes, both int64 [n], and returns the value.
        heading: Heading of its columns, written as inside a sentence.
        form: Format specification of a value that is shown.
        higher_is_better: False if a smaller value is a better one.
        best_name: Key of the best mean over rounds, selected on test data; empty for `bmt_NAME`.
        short: Heading where room is scarce; empty for the heading.
    """

    name: str
    function: Callable[[np.ndarray, np.ndarray], float]
    heading: str
    form: str = ".3f"
    higher_is_better: bool = True
    best_name: str = ""
    short: str = ""

    @property
    def title(self) -> str:
        """Returns the heading with a capital letter."""
        return self.heading[0].upper() + self.heading[1:]

    @property
    def short_heading(self) -> str:
        """Returns the heading for a line with little room."""
        return self.short or self.heading

    @property
    def best_heading(self) -> str:
        """Returns the heading of the best mean over rounds, `BMT-F1` of `bmt_f1`."""
        return self.best_key.upper().replace("_", "-")

    @property
    def best_key(self) -> str:
        """Returns the key of the best mean over rounds."""
        return self.best_name or f"bmt_{self.name}"

    def best_of(self, values: list[float]) -> float:
        """Returns the best of some values of this metric."""
        return max(values) if self.higher_is_better else min(values)


def accuracy(predicted: np.ndarray, labels: np.ndarray) -> float:
    """Returns the share of images whose predicted class is the true one."""
    return float(np.mean(predicted == labels))


def macro_f1(predicted: np.ndarray, labels: np.ndarray) -> float:
    """Returns the mean F1 score over the classes that the set itself holds.

    The true labels fix the list of classes. So a client with six classes can reach 1, and all
    methods are averaged over the same classes. scikit-learn's default takes the union of true and
    predicted labels instead: one stray prediction of an absent class then adds an F1 of 0 and a
    class to divide by, and two methods on one set no longer mean the same average.
    """
    # the import takes a second, which a report need not take
    from sklearn.metrics import f1_score

    classes = np.unique(labels)
    return float(f1_score(labels, predicted, labels=classes, average="macro", zero_division=0))


METRICS = [
    Metric("accuracy", accuracy, "accuracy", best_name="bmta"),
    Metric("macro_f1", macro_f1, "macro-F1", best_name="bmt_f1", short="F1"),
]


def other_metrics() -> list[Metric]:
    """Returns all metrics but accuracy."""
    return METRICS[1:]


def scores_of(predicted: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Returns {name: value} of every metric, from predicted and true classes, both int64 [n].

    >>> scores_of(np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]))["accuracy"]
    0.75
    """
    return {metric.name: metric.function(predicted, labels) for metric in METRICS}


def over_clients(values: dict[str, dict[str, float]]) -> dict[str, float]:
    """Returns what a method's scores are over clients, each client counting alike.

    Args:
        values: {client: {name: value}}, as `scores_of` returns them.

    Returns:
        The mean, the worst and the spread (standard deviation) of accuracy, and of every other
        metric `mean_NAME`.
    """
    accuracies = np.array([scores["accuracy"] for scores in values.values()])
    summary = {
        "mean_accuracy": float(accuracies.mean()),
        "worst_accuracy": float(accuracies.min()),
        "spread_accuracy": float(accuracies.std()),
    }
    for metric in other_metrics():
        clients = np.array([scores[metric.name] for scores in values.values()])
        summary[f"mean_{metric.name}"] = float(clients.mean())
    return summary
