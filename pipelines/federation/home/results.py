"""What a method leaves behind: scores, curve, which test images are right, cost, personal models. All of it private."""

from pathlib import Path

import numpy as np

from pipelines import paths
from pipelines.errors import UserError
from pipelines.evaluation.metrics import over_clients
from pipelines.files import AGAIN, read_arrays, write_arrays, write_csv, write_json
from pipelines.training.tensors import State


def save_method(
    folder: Path,
    method: str,
    summary: dict,
    curve: list[dict],
    personal: dict[str, State],
    *,
    correct: dict[str, np.ndarray],
    cost: dict,
) -> None:
    """One method's part of a stage's output, under `folder/METHOD` with its slashes as dashes.

    What a clock says stands in cost.json alone: the same seed gives the same bytes in every other file.

    Args:
        correct: per client bool [n], whether each image of its test part is right.
        cost: as in `rounds.History`, with "seconds_at_home", of the final fine-tuning.
    """
    own = folder / method.replace("/", "-")
    own.mkdir()
    write_json(own / "results.json", {"method": method, **summary})
    write_csv(own / "rounds.csv", curve)
    write_arrays(own / paths.CORRECT, correct)
    write_json(own / paths.COST, cost)
    for client, state in personal.items():
        write_arrays(own / f"{client}.safetensors", state)


def leave_out(folder: Path, method: str, why: str) -> None:
    """In the place of a method that did not run: the reason alone."""
    own = folder / method
    own.mkdir()
    write_json(own / "results.json", {"method": method, "left_out": why})


def save_models(path: Path, models: list[State]) -> None:
    """The global models of all rounds, stacked: [rounds + 1, ...] per weight."""
    write_arrays(path, {name: np.stack([model[name] for model in models]) for name in models[0]})


def load_models(path: Path) -> list[State]:
    """The inverse of `save_models`.

    Raises:
        UserError: the file is absent or damaged, or holds no model.
    """
    stacked = read_arrays(path)
    if not stacked or not all(array.ndim for array in stacked.values()):
        raise UserError(f"{path} holds no model. {AGAIN}")
    count = len(next(iter(stacked.values())))
    return [{name: array[i] for name, array in stacked.items()} for i in range(count)]


def line(summary: dict) -> str:
    """One line for the terminal: mean accuracy at home, before and after fine-tuning."""
    before, after = (
        over_clients({c: e[when] for c, e in summary["clients"].items()})
        for when in ("before", "after")
    )
    return f"accuracy {before['mean_accuracy']:.3f} before, {after['mean_accuracy']:.3f} after fine-tuning"
