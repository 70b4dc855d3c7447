"""Which round: the curve of a method over its rounds, and what may be selected on it. Private."""

from pipelines.evaluation.metrics import METRICS, other_metrics, over_clients


def row(number: int, results: dict[str, dict]) -> dict:
    """One round of the curve; every client counts alike."""
    before = over_clients({client: entry["before"] for client, entry in results.items()})
    after = over_clients({client: entry["after"] for client, entry in results.items()})
    return {
        "round": number,
        "accuracy_before": before["mean_accuracy"],
        "accuracy_after": after["mean_accuracy"],
        "accuracy_validation": _mean(results, "validation"),
        "worst_after": after["worst_accuracy"],
        **{f"{metric.name}_after": after[f"mean_{metric.name}"] for metric in other_metrics()},
        "global_accuracy": _mean(results, "global_before"),
    }


def untuned(number: int, globally: dict[str, float]) -> dict:
    """A round that nobody fine-tuned: each client's initial model on the global test set."""
    return {"round": number, "global_accuracy": sum(globally.values()) / len(globally)}


def figures(curve: list[dict]) -> dict:
    """{"candidates", "selected", "bmta", "bmt_f1"}: figures of selected rounds, to stand beside the last round's.

    A candidate is a fine-tuned round after the first step of training; round 0 counts for methods without rounds
    alone. With one candidate nothing was selected, and all figures are that round's.

    `selected`: the round of the best mean accuracy on the private validation parts, the earliest among equals. Early
    stopping uses these parts too, in each round alike. It is an experimenter's figure: in a federation the clients'
    validation scores would have to leave them, and nothing here accounts for that. `bmta` and `bmt_f1` are the
    paper's maxima of mean test accuracy and macro-F1: selected on test data, for comparison alone.
    """
    tuned = [row for row in curve if "accuracy_after" in row]
    candidates = [row for row in tuned if row["round"] > 0] or tuned
    best = max(candidates, key=lambda row: row["accuracy_validation"])
    return {
        "candidates": len(candidates),
        "selected": {
            "round": best["round"],
            "mean_accuracy": best["accuracy_after"],
            "worst": best["worst_after"],
            **{metric.name: best[f"{metric.name}_after"] for metric in other_metrics()},
        },
        **_best_means(candidates),
    }


def _best_means(candidates: list[dict]) -> dict[str, float]:
    """Returns the best mean over rounds of every metric, under its key: "bmta", "bmt_f1"."""
    best = {}
    for metric in METRICS:
        best[metric.best_key] = metric.best_of([row[f"{metric.name}_after"] for row in candidates])
    return best


def _mean(results: dict[str, dict], field: str) -> float:
    return sum(entry[field] for entry in results.values()) / len(results)
