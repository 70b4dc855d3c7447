"""Each table and figure as rows for a CSV: means over cells, intervals of paired differences, the paper's beside."""

from experiments import published
from experiments.correlation import gain_against_local
from experiments.plans import GROUPS, NEWCOMERS, STABILISERS
from experiments.summaries import by, cells, ends, generators, mean, methods, newcomers_cells, over_runs, paired

FLOWS = {  # {what trains / what is tested: (method, moment)}, each as far as there is such a method
    "local, secret / secret": ("local", ""),
    "local, synthetic / secret": ("own_synthetic", "_before"),
    "collaborative, synthetic / secret": ("fedavg", "_before"),
    "collaborative, synthetic + fine-tuning / secret": ("fedavg", ""),
    "collaborative, secret / secret": ("fedavg_real", "_before"),
}
ONCE = ("selected_mean_accuracy", "bmta", "bmt_f1", "epsilon_max", "rounds", "bytes_up", "bytes_down")
SECONDS = ("seconds", "seconds_at_home")


def table2(rows: list[dict]) -> list[dict]:
    return _methods(rows, published.TABLE2)


def table3(rows: list[dict]) -> list[dict]:
    return _methods(rows, published.TABLE3)


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
                    {"dataset": dataset, "flow": flow, "generator": generator, "method": name, "cells": len(accuracy)}
                    | {"accuracy": mean(accuracy), "macro_f1": mean(cells(own, method, f"macro_f1{moment}"))}
                    | ends("over_local", paired(accuracy, local, dataset, flow) if name != "local" else None)
                    | _beside(published.TABLE4[flow].get(dataset))
                )
    return found


def table5(rows: list[dict]) -> list[dict]:
    """Differences are to infinite epsilon, on the same partition and test images."""
    found = []
    for dataset, own in by(rows, "dataset").items():
        groups = by(own, "variant")
        for generator in generators(own):
            method, accuracy = f"pppfl/{generator}", {}
            for group in GROUPS:
                accuracy[group] = cells(groups.get(group, []), method, "accuracy")
            for group in [group for group in GROUPS if group in groups]:
                of, differ = groups[group], group != "inf" and accuracy["inf"]
                paper = published.TABLE5[group]
                found.append(
                    {"dataset": dataset, "generator": generator, "epsilon": group, "cells": len(accuracy[group])}
                    | {"accuracy": mean(accuracy[group]), "macro_f1": mean(cells(of, method, "macro_f1"))}
                    | ends("over_inf", paired(accuracy[group], accuracy["inf"], dataset, group) if differ else None)
                    | {name: _fidelity(of, generator, name) for name in ("inception_score", "fid", "fid_floor")}
                    | {
                        name: mean([row["fidelity"][name] for row in of])
                        for name in ("inception_score_real", "judge_accuracy")
                    }
                    | _beside(paper[:2])
                    | {"published_inception_score": paper[2], "published_fid": paper[3]}
                )
    return found


def figure2(rows: list[dict]) -> list[dict]:
    found = []
    for dataset, own in by(rows, "dataset").items():
        variants = by(own, "variant")
        for generator in generators(own):
            method = f"pppfl/{generator}"
            plain = cells(variants.get("neither", []), method, "accuracy")
            for variant in [variant for variant in STABILISERS if variant in variants]:
                accuracy = cells(variants[variant], method, "accuracy")
                compared = plain if variant != "neither" else None
                found.append(
                    {"dataset": dataset, "generator": generator, "stabilisers": variant, "cells": len(accuracy)}
                    | {"accuracy": mean(accuracy), "macro_f1": mean(cells(variants[variant], method, "macro_f1"))}
                    | {"shared_accuracy": mean(cells(variants[variant], method, "global_before"))}
                    | ends("over_neither", paired(accuracy, compared, dataset, variant) if compared else None)
                )
    return found


def figure4(rows: list[dict]) -> list[dict]:
    found = []
    for dataset, own in by(rows, "dataset").items():
        local = cells(own, "local", "accuracy")
        for generator in generators(own):
            ours = cells(own, f"pppfl/{generator}", "accuracy")
            both = sorted(local.keys() & ours.keys())
            figures = gain_against_local([local[cell] for cell in both], [ours[cell] for cell in both])
            paper = {f"published_{name}": value for name, value in published.FIGURE4.items()}
            found.append({"dataset": dataset, "generator": generator, **figures, **paper})
    return found


def newcomers(rows: list[dict]) -> list[dict]:
    """A row per number of labels, rounds and model handed out; differences to an untrained one, and PPPFL's to each,
    after the same number of rounds."""
    found = []
    for dataset, own in by(rows, "dataset").items():
        variants = by(own, "variant")
        for labels in sorted({cell["labels"] for row in own for cell in row["newcomers"]["cells"]}):
            for variant in [variant for variant in NEWCOMERS if variant in variants]:
                found += _handed_out(dataset, labels, NEWCOMERS[variant], variants[variant])
    return found


def _handed_out(dataset: str, labels: int, rounds: int, rows: list[dict]) -> list[dict]:
    found, ours, bar = [], *(newcomers_cells(rows, name, labels, "accuracy") for name in ("pppfl", "random_init"))
    for method in dict.fromkeys(name for row in rows for name in row["newcomers"]["algorithms"]):
        accuracy = newcomers_cells(rows, method, labels, "accuracy")
        over_bar = paired(accuracy, bar, dataset, method, str(labels)) if method != "random_init" else None
        pppfl = paired(ours, accuracy, dataset, method, str(labels), "pppfl") if method != "pppfl" else None
        found.append(
            {"dataset": dataset, "labels": labels, "rounds": rounds, "method": method, "cells": len(accuracy)}
            | {"accuracy": mean(accuracy), "generator": rows[0]["newcomers"]["generator"]}
            | {"global_accuracy": mean(newcomers_cells(rows, method, labels, "global_accuracy"))}
            | ends("over_random_init", over_bar)
            | ends("pppfl_over_it", pppfl)
        )
    return found


def _methods(rows: list[dict], paper: dict) -> list[dict]:
    found = []
    for dataset, own in by(rows, "dataset").items():
        local = cells(own, "local", "accuracy")
        for method, entry in methods(own).items():
            name, _, generator = method.partition("/")
            accuracy = cells(own, method, "accuracy")
            found.append(
                {"dataset": dataset, "method": name, "generator": generator, "cells": len(accuracy)}
                | {"accuracy": mean(accuracy)}
                | ends("over_local", paired(accuracy, local, dataset, method) if name != "local" else None)
                | {field: mean(cells(own, method, field)) for field in ("macro_f1", "accuracy_before", "global_before")}
                | {_column(field): over_runs(own, method, field) for field in (*ONCE, *SECONDS)}
                | {"guarantee": entry["guarantee"], "upper_bound": entry["upper_bound"]}
                | _beside(paper.get(name, {}).get(dataset))
            )
    return found


def _column(field: str) -> str:
    """The name says what was selected on test data."""
    return f"{field}_test_selected" if field.startswith("bmt") else field


def _beside(figures: tuple | None) -> dict:
    bmt_f1, bmta = figures or (None, None)
    return {"published_bmta": bmta, "published_bmt_f1": bmt_f1}


def _fidelity(rows: list[dict], generator: str, field: str) -> float | None:
    """The mean over cells."""
    return mean([entry[field] for row in rows for entry in row["fidelity"]["clients"][generator].values()])
