"""What a method leaves behind: results.json, rounds.csv and the personal models. Private, all of it."""

from pathlib import Path

import numpy as np

from pipelines.evaluation.metrics import over_clients
from pipelines.files import read_arrays, write_arrays, write_csv, write_json
from pipelines.training.tensors import State


def save_method(folder: Path, method: str, summary: dict, curve: list[dict], personal: dict[str, State]) -> None:
    """One method's part of a stage's output, under `folder/METHOD` with its slashes as dashes."""
    own = folder / method.replace("/", "-")
    own.mkdir()
    write_json(own / "results.json", {"method": method, **summary})
    write_csv(own / "rounds.csv", curve)
    for client, state in personal.items():
        write_arrays(own / f"{client}.safetensors", state)


def save_models(path: Path, models: list[State]) -> None:
    """The global models of all rounds, stacked: [rounds + 1, ...] per weight."""
    write_arrays(path, {name: np.stack([model[name] for model in models]) for name in models[0]})


def load_models(path: Path) -> list[State]:
    stacked = read_arrays(path)
    count = len(next(iter(stacked.values())))
    return [{name: array[i] for name, array in stacked.items()} for i in range(count)]


def line(summary: dict) -> str:
    """One line for the terminal: mean accuracy at home, before and after fine-tuning."""
    before, after = (over_clients({c: e[when] for c, e in summary["clients"].items()}) for when in ("before", "after"))
    return f"accuracy {before['mean_accuracy']:.3f} before, {after['mean_accuracy']:.3f} after fine-tuning"
