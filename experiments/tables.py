"""Makes Tables II to IV, the roads and Fig. 4 as rows for a CSV.

They hold means over cells, intervals of paired differences, and the paper's figures beside them.
"""

from experiments import paper_figures
from experiments.paper_figures import beside
from experiments.summaries import (
    Cells,
    accuracies_in_both,
    by,
    by_seed,
    cells,
    ends,
    gain_against_local,
    generators,
    mean,
    means_of_other_metrics,
    methods,
    over_clients,
    over_runs,
    paired,
    selected,
)

# {what trains / what is tested: (method, moment)}, each as far as there is such a method
FLOWS = {
    "local, secret / secret": ("local", ""),
    "local, synthetic / secret": ("own_synthetic", "_before"),
    "collaborative, synthetic / secret": ("fedavg", "_before"),
    "collaborative, synthetic + fine-tuning / secret": ("fedavg", ""),
    "collaborative, secret / secret": ("fedavg_real", "_before"),
}
# The same client alone: trained for longer; fine-tuned as all others are.
BASES = ("local", "random_init")
# Accuracies on the global test set.
ON_GLOBAL_TEST = ("global_before", "global_after", "global_elsewhere")
# {method: the paper's name for it}
PRINTED_AS = {"pppfl_paper": "pppfl"}
ONCE = ("epsilon_max", "rounds", "bytes_up", "bytes_down", "seconds", "seconds_at_home")


def table2(rows: list[dict]) -> list[dict]:
    """Returns a row per method, the paper's Table II beside it."""
    return _methods(rows, paper_figures.TABLE2)


def table3(rows: list[dict]) -> list[dict]:
    """Returns a row per method, the paper's Table III beside it."""
    return _methods(rows, paper_figures.TABLE3)


def roads(rows: list[dict]) -> list[dict]:
    """Returns a row per method. No paper has this table."""
    return _methods(rows, {})


def table4(rows: list[dict]) -> list[dict]:
    """Returns a row per flow of data: FedAvg and the bounds around it.

    The table shows where the data flows, not which algorithm is best.
    """
    table = []
    for dataset, runs in by(rows, "dataset").items():
        for flow, (name, _) in FLOWS.items():
            if name in methods(runs):
                table.append(_flow(runs, dataset, flow, generator=""))
                continue
            for generator in generators(runs):
                table.append(_flow(runs, dataset, flow, generator))
    return table


def figure4(rows: list[dict]) -> list[dict]:
    """Returns a row per generator and base. The paper's figure is beside `local`'s alone."""
    table = []
    for dataset, runs in by(rows, "dataset").items():
        for generator in generators(runs):
            for base in BASES:
                row = {"dataset": dataset, "generator": generator, "base": base}
                pairs = accuracies_in_both(runs, base, f"pppfl/{generator}")
                row |= gain_against_local(*pairs)
                for name, value in paper_figures.FIGURE4.items():
                    row[f"published_{name}"] = value if base == "local" else None
                table.append(row)
    return table


def _flow(runs: list[dict], dataset: str, flow: str, generator: str) -> dict:
    """Returns one row of Table IV."""
    name, moment = FLOWS[flow]
    method = f"{name}/{generator}" if generator else name
    accuracy = cells(runs, method, f"accuracy{moment}")
    difference = None
    if name != "local":
        difference = paired(accuracy, cells(runs, "local", "accuracy"), dataset, flow)
    return {
        "dataset": dataset,
        "flow": flow,
        "generator": generator,
        "method": name,
        "cells": len(accuracy),
        "accuracy": mean(accuracy),
        **means_of_other_metrics(runs, method, moment),
        **ends("over_local", difference),
        **beside(paper_figures.TABLE4[flow].get(dataset)),
    }


def _methods(rows: list[dict], paper: dict) -> list[dict]:
    """Returns a row per data set and method. paper: {method: {data set: figures}}."""
    table = []
    for dataset, runs in by(rows, "dataset").items():
        alone = {base: cells(runs, base, "accuracy") for base in BASES}
        ours = {name: cells(runs, f"pppfl/{name}", "accuracy") for name in generators(runs)}
        single = next(iter(ours)) if len(ours) == 1 else None
        for method, part in methods(runs).items():
            name, _, generator = method.partition("/")
            accuracy = cells(runs, method, "accuracy")
            row = {"dataset": dataset, "method": name, "generator": generator}
            row |= {"cells": len(accuracy), "accuracy": mean(accuracy)}
            row |= over_clients(accuracy)
            row |= _over(alone, accuracy, dataset, method)
            row |= _under(ours.get(generator or single), accuracy, dataset, method)
            row |= means_of_other_metrics(runs, method)
            for field in ("accuracy_before", *ON_GLOBAL_TEST):
                row[field] = mean(cells(runs, method, field))
            row |= selected(runs, method)
            for field in ONCE:
                row[field] = over_runs(runs, method, field)
            row |= {"guarantee": part["guarantee"], "upper_bound": part["upper_bound"]}
            row |= beside(paper.get(PRINTED_AS.get(name, name), {}).get(dataset))
            table.append(row)
    return table


def _over(alone: dict[str, Cells], accuracy: Cells, dataset: str, method: str) -> dict:
    """Returns a method's differences to each of BASES that ran, but to itself."""
    columns = {}
    for base, base_accuracy in alone.items():
        difference = None
        if base_accuracy and method != base:
            difference = paired(accuracy, base_accuracy, dataset, method)
        columns |= ends(f"over_{base}", difference)
    return columns


def _under(ours: Cells | None, accuracy: Cells, dataset: str, method: str) -> dict:
    """Returns PPPFL less a method, on the same images.

    A method that reads no images is compared only if there is one generator to be meant.
    """
    if not ours or method.startswith("pppfl/"):
        return {**ends("pppfl_over_it", None), "pppfl_by_seed": None}
    difference = paired(ours, accuracy, dataset, method, "pppfl")
    return {**ends("pppfl_over_it", difference), "pppfl_by_seed": by_seed(ours, accuracy)}
