"""Makes runs of experiments by hand, as their store holds them."""


def method(*accuracies: float, before: float = 0.3, **other) -> dict:
    """Returns a method's entry of a run with clients c0, c1, ...

    Macro-F1 is a tenth below the accuracy.
    """
    clients = {}
    for number, accuracy in enumerate(accuracies):
        clients[f"c{number}"] = {
            "accuracy": accuracy,
            "macro_f1": accuracy - 0.1,
            "accuracy_before": before,
            "macro_f1_before": before - 0.1,
            "global_before": 0.2,
            "global_after": 0.1,
        }
    entry = {"candidates": 7, "selected_mean_accuracy": 0.8, "bmta": 0.9, "bmt_f1": 0.85}
    entry |= {"epsilon_max": 10.0, "guarantee": "formal"}
    entry |= {
        "rounds": 30,
        "bytes_up": 1000,
        "bytes_down": 1000,
        "seconds": 5.0,
        "seconds_at_home": 7.0,
    }
    return {**entry, "upper_bound": False, **other, "clients": clients}


def run(seed: int, methods: dict, *, dataset: str = "mnist", variant: str = "", **other) -> dict:
    return {
        "dataset": dataset,
        "seed": seed,
        "variant": variant,
        "settings": {},
        "methods": methods,
        **other,
    }


def newcomers(
    seed: int, accuracies: dict[str, list[float]], labels: int = 8, variant: str = "newcomers"
) -> dict:
    """Returns a run with one client held out. accuracies: {method: one per draw}."""
    cells = []
    for name, values in accuracies.items():
        for draw, value in enumerate(values, start=1):
            cell = {"algorithm": name, "client": "c0", "labels": labels, "draw": draw}
            cell |= {"accuracy": value, "global_accuracy": value - 0.1}
            cells.append(cell | {"macro_f1": 0.0, "global_macro_f1": 0.0})
    study = {
        "generator": "dp_moments",
        "algorithms": list(accuracies),
        "labels": [labels],
        "skipped": [],
        "cells": cells,
    }
    return run(seed, {}, variant=variant, newcomers=study)
