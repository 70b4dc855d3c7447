"""Makes Table V, Fig. 2 and the newcomers as rows for a CSV.

Each table compares runs of several variants on the same cells.
"""

from collections.abc import Iterable

from experiments import paper_figures
from experiments.paper_figures import beside
from experiments.plans import GROUPS, HANDED_OUT, STABILISERS, of_images
from experiments.summaries import (
    Cells,
    ahead,
    by,
    cells,
    ends,
    generators,
    mean,
    means_of_other_metrics,
    newcomers_cells,
    newcomers_costs,
    paired,
    selected,
)
from pipelines.evaluation import image_quality


def table5(rows: list[dict]) -> list[dict]:
    """Returns a row per group of epsilons.

    Differences are to infinite epsilon, on the same partition and test images.
    """
    table = []
    for dataset, runs in by(rows, "dataset").items():
        for generator in generators(runs):
            groups = variants_of(runs, generator, GROUPS)
            without_privacy = cells(groups.get("inf", []), f"pppfl/{generator}", "accuracy")
            for group, group_runs in groups.items():
                row = {"dataset": dataset, "generator": generator, "epsilon": group}
                row |= _group(group_runs, generator, group, dataset, without_privacy)
                table.append(row)
    return table


def figure2(rows: list[dict]) -> list[dict]:
    """Returns a row per combination of stabilisers. Differences are to neither of the two."""
    table = []
    for dataset, runs in by(rows, "dataset").items():
        for generator in generators(runs):
            variants = variants_of(runs, generator, STABILISERS)
            method = f"pppfl/{generator}"
            plain = cells(variants.get("neither", []), method, "accuracy")
            for variant, variant_runs in variants.items():
                accuracy = cells(variant_runs, method, "accuracy")
                difference = None
                if plain and variant != "neither":
                    difference = paired(accuracy, plain, dataset, variant)
                query = [run["query_per_round"][generator][-1] for run in variant_runs]
                row = {"dataset": dataset, "generator": generator, "stabilisers": variant}
                row |= {"cells": len(accuracy), "accuracy": mean(accuracy)}
                row |= means_of_other_metrics(variant_runs, method)
                row["shared_accuracy"] = mean(cells(variant_runs, method, "global_before"))
                row["query_accuracy"] = mean(query)
                row |= selected(variant_runs, method)
                row |= ends("over_neither", difference)
                table.append(row)
    return table


def variants_of(rows: list[dict], generator: str, names: Iterable[str]) -> dict[str, list[dict]]:
    """Returns the runs of each variant on one generator's images.

    Args:
        rows: Stored runs.
        generator: Name of the generator.
        names: Names of variants; the result has their order.

    Returns:
        {name: runs} of the variants that ran.
    """
    runs = by(rows, "variant")
    variants = {}
    for name in names:
        if of_images(generator, name) in runs:
            variants[name] = runs[of_images(generator, name)]
    return variants


def newcomers(rows: list[dict]) -> list[dict]:
    """Returns a row per number of labels and model handed out.

    Differences are to an untrained model, and PPPFL's to each.
    """
    table = []
    for dataset, runs in by(rows, "dataset").items():
        counts = set()
        for run in runs:
            counts.update(cell["labels"] for cell in run["newcomers"]["cells"])
        for labels in sorted(counts):
            table += _handed_out(dataset, labels, runs)
    return table


def _group(
    runs: list[dict], generator: str, group: str, dataset: str, without_privacy: Cells
) -> dict:
    """Returns the figures of one group of epsilons; without_privacy: accuracies at infinity."""
    method = f"pppfl/{generator}"
    accuracy = cells(runs, method, "accuracy")
    difference = None
    if without_privacy and group != "inf":
        difference = paired(accuracy, without_privacy, dataset, group)
    row = {"cells": len(accuracy), "accuracy": mean(accuracy)}
    row |= means_of_other_metrics(runs, method)
    row |= ends("over_inf", difference)
    for name in ("inception_score", *image_quality.shown_fields()):
        row[name] = _fidelity(runs, generator, name)
    for name in ("inception_score_real", "judge_accuracy"):
        row[name] = mean([run["fidelity"][name] for run in runs])
    *best, inception_score, fid = paper_figures.TABLE5[group]
    row |= beside(tuple(best))
    return row | {"published_inception_score": inception_score, "published_fid": fid}


def _handed_out(dataset: str, labels: int, rows: list[dict]) -> list[dict]:
    """Returns a row per model that newcomers were handed."""
    table = []
    algorithms = set()
    for row in rows:
        algorithms.update(row["newcomers"]["algorithms"])
    ours = newcomers_cells(rows, "pppfl", labels, "accuracy")
    untrained = newcomers_cells(rows, "random_init", labels, "accuracy")
    for method in filter(algorithms.__contains__, HANDED_OUT):
        accuracy = newcomers_cells(rows, method, labels, "accuracy")
        everywhere = newcomers_cells(rows, method, labels, "global_accuracy")
        names = (dataset, method, str(labels))
        gain = None if method == "random_init" else paired(accuracy, untrained, *names)
        lead = None if method == "pppfl" else paired(ours, accuracy, *names, "pppfl")
        row = {"dataset": dataset, "labels": labels, "method": method}
        row |= {"cells": len(accuracy), "accuracy": mean(accuracy)}
        row["generator"] = rows[0]["newcomers"]["generator"]
        row["global_accuracy"] = mean(everywhere)
        row |= ends("over_random_init", gain)
        row |= ends("pppfl_over_it", lead)
        row["pppfl_ahead"] = None if method == "pppfl" else ahead(ours, accuracy)
        for field in ("bytes_up", "bytes_down", "seconds"):
            row[field] = newcomers_costs(rows, method, field)
        table.append(row)
    return table


def _fidelity(rows: list[dict], generator: str, field: str) -> float | None:
    """Returns the mean over cells; None if an earlier run did not keep the field."""
    values = []
    for row in rows:
        for scores in row["fidelity"]["clients"][generator].values():
            values.append(scores.get(field))
    return mean(values)
