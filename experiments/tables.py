"""Tables II to IV, the roads and Fig. 4 as rows for a CSV: means over cells, intervals of paired differences, the
paper's figures beside."""

from experiments import paper_figures
from experiments.correlation import gain_against_local
from experiments.paper_figures import beside
from experiments.summaries import (
    Cells,
    accuracies_in_both,
    by,
    by_seed,
    cells,
    ends,
    generators,
    mean,
    methods,
    over_clients,
    over_runs,
    paired,
    selected,
)

FLOWS = {  # {what trains / what is tested: (method, moment)}, each as far as there is such a method
    "local, secret / secret": ("local", ""),
    "local, synthetic / secret": ("own_synthetic", "_before"),
    "collaborative, synthetic / secret": ("fedavg", "_before"),
    "collaborative, synthetic + fine-tuning / secret": ("fedavg", ""),
    "collaborative, secret / secret": ("fedavg_real", "_before"),
}
ONCE = ("epsilon_max", "rounds", "bytes_up", "bytes_down")
BASES = (
    "local",
    "random_init",
)  # the same client alone: trained for longer; fine-tuned as all others are
PRINTED_AS = {"pppfl_paper": "pppfl"}  # ours: {method: the paper's name for it}
SECONDS = ("seconds", "seconds_at_home")


def table2(rows: list[dict]) -> list[dict]:
    return _methods(rows, paper_figures.TABLE2)


def table3(rows: list[dict]) -> list[dict]:
    return _methods(rows, paper_figures.TABLE3)


def roads(rows: list[dict]) -> list[dict]:
    """No paper has this table."""
    return _methods(rows, {})


def table4(rows: list[dict]) -> list[dict]:
    """Only FedAvg and the bounds around it: where the data flows, not which algorithm is best."""
    found = []
    for dataset, own in by(rows, "dataset").items():
        local = cells(own, "local", "accuracy")
        for flow, (name, moment) in FLOWS.items():
            for generator in [""] if name in methods(own) else generators(own):
                method = f"{name}/{generator}" if generator else name
                accuracy = cells(own, method, f"accuracy{moment}")
                found.append(
                    {
                        "dataset": dataset,
                        "flow": flow,
                        "generator": generator,
                        "method": name,
                        "cells": len(accuracy),
                    }
                    | {
                        "accuracy": mean(accuracy),
                        "macro_f1": mean(cells(own, method, f"macro_f1{moment}")),
                    }
                    | ends(
                        "over_local",
                        paired(accuracy, local, dataset, flow) if name != "local" else None,
                    )
                    | beside(paper_figures.TABLE4[flow].get(dataset))
                )
    return found


def figure4(rows: list[dict]) -> list[dict]:
    """The paper's figure is beside `local`'s alone."""
    found = []
    for dataset, own in by(rows, "dataset").items():
        for generator in generators(own):
            for base in BASES:
                paper = (
                    paper_figures.FIGURE4
                    if base == "local"
                    else dict.fromkeys(paper_figures.FIGURE4)
                )
                figures = gain_against_local(*accuracies_in_both(own, base, f"pppfl/{generator}"))
                found.append(
                    {"dataset": dataset, "generator": generator, "base": base, **figures}
                    | {f"published_{name}": value for name, value in paper.items()}
                )
    return found


def _methods(rows: list[dict], paper: dict) -> list[dict]:
    found = []
    for dataset, own in by(rows, "dataset").items():
        alone = {base: cells(own, base, "accuracy") for base in BASES}
        ours = {name: cells(own, f"pppfl/{name}", "accuracy") for name in generators(own)}
        single = next(iter(ours)) if len(ours) == 1 else None
        for method, entry in methods(own).items():
            name, _, generator = method.partition("/")
            accuracy = cells(own, method, "accuracy")
            found.append(
                {"dataset": dataset, "method": name, "generator": generator, "cells": len(accuracy)}
                | {"accuracy": mean(accuracy), **over_clients(accuracy)}
                | _over(alone, accuracy, dataset, method)
                | _under(ours.get(generator or single), accuracy, dataset, method)
                | {
                    field: mean(cells(own, method, field))
                    for field in ("macro_f1", "accuracy_before", "global_before", "global_after")
                }
                | selected(own, method)
                | {field: over_runs(own, method, field) for field in (*ONCE, *SECONDS)}
                | {"guarantee": entry["guarantee"], "upper_bound": entry["upper_bound"]}
                | beside(paper.get(PRINTED_AS.get(name, name), {}).get(dataset))
            )
    return found


def _over(alone: dict[str, Cells], accuracy: Cells, dataset: str, method: str) -> dict:
    """Differences to each of BASES that ran, but to itself."""
    found = {}
    for base, bar in alone.items():
        found |= ends(
            f"over_{base}",
            paired(accuracy, bar, dataset, method) if bar and method != base else None,
        )
    return found


def _under(ours: Cells | None, accuracy: Cells, dataset: str, method: str) -> dict:
    """PPPFL less it, on the same images; of what reads none only where there is one generator to be meant."""
    compared = bool(ours) and not method.startswith("pppfl/")
    found = ends(
        "pppfl_over_it", paired(ours, accuracy, dataset, method, "pppfl") if compared else None
    )
    return {**found, "pppfl_by_seed": by_seed(ours, accuracy) if compared else None}
