"""New clients: accuracy against the number of labels, and whether PPPFL's model is worth more to them than another.

A cell is one client in one draw of labelled records. The cells of one client share its test part and the model it was
handed; intervals.over_cells takes them as independent, so an interval says which labels could have moved a figure, and
little of clients that were not held out. Without labels there is one cell per client.
"""

from collections.abc import Iterator

from pipelines import methods, seeds
from pipelines.evaluation import intervals
from pipelines.reporting import comparisons
from pipelines.reporting.findings import not_private

RIVALS = ("random_init", "fedavg")


def points(studies: dict[str, dict], seed: int) -> dict[str, dict]:
    """{GENERATOR: {METHOD: {labels: {"accuracy", "low", "high" on the clients' own test parts, "global_accuracy": mean
    on the global test set, "cells"}}}}, labels rising from 0. No interval is told of fewer than FEWEST cells.

    Args:
        studies: {GENERATOR: results.json of its stage}.
    """
    return {
        generator: {
            methods.reported(algorithm, [generator])[0]: {
                labels: _point(study, algorithm, labels, seed)
                for labels in _labels(study, algorithm)
            }
            for algorithm in study["algorithms"]
        }
        for generator, study in studies.items()
    }


def differences(studies: dict[str, dict], seed: int) -> dict[str, list[dict]]:
    """{GENERATOR: [{"method", "rival", "labels", "difference", "low", "high", "differing"}]}: PPPFL's accuracy less
    that of each of RIVALS, cell by cell. differing: cells in which they are not equal."""
    return {
        generator: [
            _compared(generator, study, rival, labels, seed)
            for rival in RIVALS
            if {"pppfl", rival} <= set(study["algorithms"])
            for labels in _labels(study, rival)
            if labels
        ]
        for generator, study in studies.items()
    }


def sentences(differences: dict[str, list[dict]]) -> list[str]:
    """One sentence per generator, its verdicts either way."""
    return [
        f"{entries[0]['method']} {'; '.join(_verdicts(entries))}."
        for entries in differences.values()
        if entries
    ]


def remarks(studies: dict[str, dict]) -> list[str]:
    """What the figures do not say by themselves: who is missing where, and what has no guarantee."""
    found = {
        f"{row['client']} has {row['records']} training records and is not among those with {row['labels']} labels."
        for study in studies.values()
        for row in study["skipped"]
    }
    void = [
        name for name, study in studies.items() if any(map(not_private, study["privacy"].values()))
    ]
    return sorted(found) + [
        f"NOT PRIVATE: no guarantee holds for what the models of {name} learnt from."
        for name in void
    ]


def _labels(study: dict, algorithm: str) -> list[int]:
    return sorted({cell["labels"] for cell in study["cells"] if cell["algorithm"] == algorithm})


def _cells(study: dict, algorithm: str, labels: int, score: str) -> dict[tuple[int, str], float]:
    return {
        (cell["draw"], cell["client"]): cell[score]
        for cell in study["cells"]
        if (cell["algorithm"], cell["labels"]) == (algorithm, labels)
    }


def _point(study: dict, algorithm: str, labels: int, seed: int) -> dict:
    own, everyone = (
        _cells(study, algorithm, labels, score) for score in ("accuracy", "global_accuracy")
    )
    found = intervals.over_cells(
        own, seed=seeds.derive(seed, "bootstrap", "new_clients", algorithm, labels)
    )
    low, high = found[1:] if len(own) >= comparisons.FEWEST else (None, None)
    ends = {"accuracy": found.value, "low": low, "high": high}
    return {**ends, "global_accuracy": sum(everyone.values()) / len(everyone), "cells": len(own)}


def _compared(generator: str, study: dict, rival: str, labels: int, seed: int) -> dict:
    one, other = (_cells(study, algorithm, labels, "accuracy") for algorithm in ("pppfl", rival))
    paired = {cell: one[cell] - other[cell] for cell in one}
    found = intervals.over_cells(
        paired, seed=seeds.derive(seed, "bootstrap", "new_clients", "pppfl", rival, labels)
    )
    names = {
        "method": f"pppfl/{generator}",
        "rival": methods.reported(rival, [generator])[0],
        "labels": labels,
    }
    low, high = found[1:] if len(paired) >= comparisons.FEWEST else (None, None)
    ends = {"difference": found.value, "low": low, "high": high}
    return {**names, **ends, "differing": sum(value != 0 for value in paired.values())}


def _verdicts(entries: list[dict]) -> Iterator[str]:
    """Equal verdicts told once, with all their numbers of labels."""
    told = {}
    for entry in entries:
        told.setdefault(comparisons.standing(entry), []).append(str(entry["labels"]))
    for standing, labels in told.items():
        yield f"{standing} with {', '.join(labels)} labels"
