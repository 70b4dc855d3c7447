"""Writes what a method leaves behind: scores, curve, right test images, cost, models. All of it is private."""

from pathlib import Path

import numpy as np

from pipelines import paths
from pipelines.errors import UserError
from pipelines.evaluation.metrics import over_clients
from pipelines.federation.home.personal import Personal, write
from pipelines.files import AGAIN, read_arrays, write_arrays, write_csv, write_json
from pipelines.training.tensors import State


def save_method(
    folder: Path,
    method: str,
    summary: dict,
    curve: list[dict],
    personal: dict[str, Personal],
    *,
    correct: dict[str, np.ndarray],
    cost: dict,
) -> None:
    """Writes one method's part of a stage's output, in `folder/METHOD` with its slashes as dashes.

    What a clock says stands in cost.json alone: the same seed gives the same bytes in every other
    file.

    Args:
        folder: the stage's output.
        method: its name.
        summary: scores of every client, and what was selected.
        curve: one row per round.
        personal: {client: its fine-tuned model}.
        correct: per client bool [n], whether each image of its test part is right.
        cost: as in `rounds.History`, with "seconds_at_home", of the final fine-tuning.
    """
    part = folder / method.replace("/", "-")
    part.mkdir()
    write_json(part / "results.json", {"method": method, **summary})
    write_csv(part / "rounds.csv", curve)
    write_arrays(part / paths.CORRECT, correct)
    write_json(part / paths.COST, cost)
    for client, model in personal.items():
        write(part / f"{client}.safetensors", model)


def leave_out(folder: Path, method: str, why: str) -> None:
    """Writes the reason in the place of a method that did not run.

    Args:
        folder: the stage's output.
        method: its name.
        why: a sentence.
    """
    part = folder / method
    part.mkdir()
    write_json(part / "results.json", {"method": method, "left_out": why})


def save_models(path: Path, models: list[State]) -> None:
    """Writes the global models of all rounds, stacked: [rounds + 1, ...] per weight."""
    write_arrays(path, {name: np.stack([model[name] for model in models]) for name in models[0]})


def load_models(path: Path) -> list[State]:
    """Reads what `save_models` wrote.

    Raises:
        UserError: the file is absent or damaged, or holds no model.
    """
    stacked = read_arrays(path)
    if not stacked or not all(array.ndim for array in stacked.values()):
        raise UserError(f"{path} holds no model. {AGAIN}")
    count = len(next(iter(stacked.values())))
    return [{name: array[i] for name, array in stacked.items()} for i in range(count)]


def line(summary: dict) -> str:
    """Returns a line for the terminal: mean accuracy of the clients before and after fine-tuning."""
    before = _mean_accuracy(summary, "before")
    after = _mean_accuracy(summary, "after")
    return f"accuracy {before:.3f} before, {after:.3f} after fine-tuning"


def _mean_accuracy(summary: dict, when: str) -> float:
    scores = {client: entry[when] for client, entry in summary["clients"].items()}
    return over_clients(scores)["mean_accuracy"]
