"""Which round: the curve of a method over its rounds, and what may be selected on it. Private."""

from pipelines.evaluation.metrics import over_clients


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
        "macro_f1_after": after["mean_macro_f1"],
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
            "macro_f1": best["macro_f1_after"],
        },
        "bmta": max(row["accuracy_after"] for row in candidates),
        "bmt_f1": max(row["macro_f1_after"] for row in candidates),
    }


def _mean(results: dict[str, dict], field: str) -> float:
    return sum(entry[field] for entry in results.values()) / len(results)
