"""Says how a new client does with few labels, and whether PPPFL's model is worth more to it.

A cell is one client in one draw of labelled records. The cells of one client share its test part
and the model that it started from, and `intervals.over_cells` takes them as independent. An
interval therefore says which labels could have moved a figure, and little of clients that were not
held out. Without labels there is one cell per client.
"""

from pipelines import methods, seeds
from pipelines.evaluation import intervals
from pipelines.reporting import comparisons
from pipelines.reporting.findings import not_private

RIVALS = ("random_init", "fedavg")

# (draw, client): score.
Cells = dict[tuple[int, str], float]


def points(studies: dict[str, dict], seed: int) -> dict[str, dict]:
    """Returns each method's accuracy for each number of labels, from 0 up.

    Args:
        studies: {GENERATOR: results.json of its stage}.
        seed: Seed of the run, from which the bootstrap's is derived.

    Returns:
        {GENERATOR: {METHOD: {labels: point}}}. A point has "accuracy", "low" and "high" on the
        clients' own test parts, "global_accuracy", the mean on the global test set, and "cells".
        "low" and "high" are None for fewer than FEWEST cells.
    """
    by_generator = {}
    for generator, study in studies.items():
        by_method = {}
        for algorithm in study["algorithms"]:
            line = {}
            for labels in _label_counts(study, algorithm):
                line[labels] = _point(study, algorithm, labels, seed)
            by_method[methods.reported(algorithm, [generator])[0]] = line
        by_generator[generator] = by_method
    return by_generator


def differences(studies: dict[str, dict], seed: int) -> dict[str, list[dict]]:
    """Returns PPPFL's accuracy less that of each of RIVALS, cell by cell.

    Args:
        studies: {GENERATOR: results.json of its stage}.
        seed: Seed of the run, from which the bootstrap's is derived.

    Returns:
        {GENERATOR: [{"method", "rival", "labels", "difference", "low", "high", "differing"}]}.
        "differing" counts the cells in which the two are not equal.
    """
    by_generator = {}
    for generator, study in studies.items():
        by_generator[generator] = []
        for rival in RIVALS:
            if not {"pppfl", rival} <= set(study["algorithms"]):
                continue
            for labels in _label_counts(study, rival):
                if labels:
                    entry = _compared(generator, study, rival, labels, seed)
                    by_generator[generator].append(entry)
    return by_generator


def sentences(differences: dict[str, list[dict]]) -> list[str]:
    """Returns one sentence per generator, which gives every verdict, good or bad.

    Example:
        >>> entry = {"method": "pppfl/datalens", "rival": "random_init", "low": 0.1, "high": 0.2}
        >>> entries = [entry | {"labels": labels, "differing": 12} for labels in (8, 16)]
        >>> sentences({"datalens": entries})
        ['pppfl/datalens is ahead of random_init with 8, 16 labels.']
    """
    texts = []
    for entries in filter(None, differences.values()):
        texts.append(f"{entries[0]['method']} {_verdicts(entries)}.")
    return texts


def remarks(studies: dict[str, dict]) -> list[str]:
    """Returns what the figures do not say: who is missing where, and what has no guarantee.

    Args:
        studies: {GENERATOR: results.json of its stage}.
    """
    missing = set()
    without_guarantee = []
    for generator, study in studies.items():
        for row in study["skipped"]:
            missing.add(
                f"{row['client']} has {row['records']} training records "
                f"and is not among those with {row['labels']} labels."
            )
        if any(map(not_private, study["privacy"].values())):
            without_guarantee.append(
                f"NOT PRIVATE: no guarantee holds for what the models of {generator} learnt from."
            )
    return sorted(missing) + without_guarantee


def _label_counts(study: dict, algorithm: str) -> list[int]:
    """Returns the numbers of labels that an algorithm was tested with, rising."""
    return sorted({cell["labels"] for cell in study["cells"] if cell["algorithm"] == algorithm})


def _cells(study: dict, algorithm: str, labels: int, score: str) -> Cells:
    """Returns one score per cell of an algorithm with one number of labels."""
    values = {}
    for cell in study["cells"]:
        if (cell["algorithm"], cell["labels"]) == (algorithm, labels):
            values[cell["draw"], cell["client"]] = cell[score]
    return values


def _over_cells(values: Cells, seed: int, *names: str | int) -> intervals.Interval:
    """Returns the mean of cells with its interval, whose ends are None for fewer than FEWEST."""
    seed = seeds.derive(seed, "bootstrap", "new_clients", *names)
    interval = intervals.over_cells(values, seed=seed)
    if len(values) < comparisons.FEWEST:
        return interval._replace(low=None, high=None)
    return interval


def _point(study: dict, algorithm: str, labels: int, seed: int) -> dict:
    """Returns the figures of one algorithm with one number of labels."""
    local_scores = _cells(study, algorithm, labels, "accuracy")
    global_scores = _cells(study, algorithm, labels, "global_accuracy")
    accuracy = _over_cells(local_scores, seed, algorithm, labels)
    return {
        "accuracy": accuracy.value,
        "low": accuracy.low,
        "high": accuracy.high,
        "global_accuracy": sum(global_scores.values()) / len(global_scores),
        "cells": len(local_scores),
    }


def _compared(generator: str, study: dict, rival: str, labels: int, seed: int) -> dict:
    """Returns one entry of `differences`."""
    ours = _cells(study, "pppfl", labels, "accuracy")
    theirs = _cells(study, rival, labels, "accuracy")
    paired = {cell: ours[cell] - theirs[cell] for cell in ours}
    difference = _over_cells(paired, seed, "pppfl", rival, labels)
    return {
        "method": f"pppfl/{generator}",
        "rival": methods.reported(rival, [generator])[0],
        "labels": labels,
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
        "differing": sum(value != 0 for value in paired.values()),
    }


def _verdicts(entries: list[dict]) -> str:
    """Returns the verdicts, equal ones once with all their numbers of labels."""
    labels = {}
    for entry in entries:
        labels.setdefault(comparisons.standing(entry), []).append(str(entry["labels"]))
    return "; ".join(f"{text} with {', '.join(counts)} labels" for text, counts in labels.items())
