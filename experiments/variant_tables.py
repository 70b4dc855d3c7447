"""Table V, Fig. 2 and the newcomers: runs of several variants held against each other on the same cells, as rows for a
CSV."""

from collections.abc import Iterable

from experiments import paper_figures
from experiments.paper_figures import beside
from experiments.plans import GROUPS, NEWCOMERS, STABILISERS, of_images
from experiments.summaries import (
    ahead,
    by,
    cells,
    ends,
    generators,
    mean,
    newcomers_cells,
    newcomers_costs,
    paired,
    selected,
)


def table5(rows: list[dict]) -> list[dict]:
    """Differences are to infinite epsilon, on the same partition and test images."""
    found = []
    for dataset, own in by(rows, "dataset").items():
        for generator in generators(own):
            groups, method = variants_of(own, generator, GROUPS), f"pppfl/{generator}"
            accuracy = {group: cells(groups.get(group, []), method, "accuracy") for group in GROUPS}
            for group in groups:
                of, differ = groups[group], group != "inf" and accuracy["inf"]
                paper = paper_figures.TABLE5[group]
                found.append(
                    {
                        "dataset": dataset,
                        "generator": generator,
                        "epsilon": group,
                        "cells": len(accuracy[group]),
                    }
                    | {
                        "accuracy": mean(accuracy[group]),
                        "macro_f1": mean(cells(of, method, "macro_f1")),
                    }
                    | ends(
                        "over_inf",
                        paired(accuracy[group], accuracy["inf"], dataset, group)
                        if differ
                        else None,
                    )
                    | {
                        name: _fidelity(of, generator, name)
                        for name in ("inception_score", "fid", "fid_floor")
                    }
                    | {
                        name: mean([row["fidelity"][name] for row in of])
                        for name in ("inception_score_real", "judge_accuracy")
                    }
                    | beside(paper[:2])
                    | {"published_inception_score": paper[2], "published_fid": paper[3]}
                )
    return found


def figure2(rows: list[dict]) -> list[dict]:
    found = []
    for dataset, own in by(rows, "dataset").items():
        for generator in generators(own):
            variants, method = variants_of(own, generator, STABILISERS), f"pppfl/{generator}"
            plain = cells(variants.get("neither", []), method, "accuracy")
            for variant in variants:
                accuracy = cells(variants[variant], method, "accuracy")
                compared = plain if variant != "neither" else None
                found.append(
                    {
                        "dataset": dataset,
                        "generator": generator,
                        "stabilisers": variant,
                        "cells": len(accuracy),
                    }
                    | {
                        "accuracy": mean(accuracy),
                        "macro_f1": mean(cells(variants[variant], method, "macro_f1")),
                    }
                    | {"shared_accuracy": mean(cells(variants[variant], method, "global_before"))}
                    | {
                        "query_accuracy": mean(
                            [row["query_per_round"][generator][-1] for row in variants[variant]]
                        )
                    }
                    | selected(variants[variant], method)
                    | ends(
                        "over_neither",
                        paired(accuracy, compared, dataset, variant) if compared else None,
                    )
                )
    return found


def variants_of(rows: list[dict], generator: str, names: Iterable[str]) -> dict[str, list[dict]]:
    """{name: the runs of that variant on the generator's images}, of those that ran, in the order of `names`."""
    ran = by(rows, "variant")
    return {
        name: ran[of_images(generator, name)] for name in names if of_images(generator, name) in ran
    }


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
    found, ours, bar = (
        [],
        *(newcomers_cells(rows, name, labels, "accuracy") for name in ("pppfl", "random_init")),
    )
    for method in dict.fromkeys(name for row in rows for name in row["newcomers"]["algorithms"]):
        accuracy = newcomers_cells(rows, method, labels, "accuracy")
        over_bar = (
            paired(accuracy, bar, dataset, method, str(labels)) if method != "random_init" else None
        )
        rival = method != "pppfl"
        pppfl = paired(ours, accuracy, dataset, method, str(labels), "pppfl") if rival else None
        found.append(
            {
                "dataset": dataset,
                "labels": labels,
                "rounds": rounds,
                "method": method,
                "cells": len(accuracy),
            }
            | {"accuracy": mean(accuracy), "generator": rows[0]["newcomers"]["generator"]}
            | {"global_accuracy": mean(newcomers_cells(rows, method, labels, "global_accuracy"))}
            | ends("over_random_init", over_bar)
            | ends("pppfl_over_it", pppfl)
            | {"pppfl_ahead": ahead(ours, accuracy) if rival else None}
            | {
                field: newcomers_costs(rows, method, field)
                for field in ("bytes_up", "bytes_down", "seconds")
            }
        )
    return found


def _fidelity(rows: list[dict], generator: str, field: str) -> float | None:
    """The mean over cells."""
    return mean(
        [entry[field] for row in rows for entry in row["fidelity"]["clients"][generator].values()]
    )
