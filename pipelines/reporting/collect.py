"""Reads what a finished run left behind: plain dicts, one look at each file, no torch.

A file that is missing or lacks a field ends in one sentence that names it.
"""

from collections.abc import Callable
from pathlib import Path

from pipelines import methods, paths, releases
from pipelines.config import Params
from pipelines.errors import UserError
from pipelines.evaluation.image_quality import shown_fields
from pipelines.evaluation.metrics import METRICS, other_metrics
from pipelines.files import AGAIN, read_arrays, read_csv, read_json, require

STATEMENT = (
    "epsilon",
    "delta",
    "mu",
    "guarantee",
    "unit",
    "relation",
    "sampling",
    "accountant",
    "not_covered",
    "cost",
)
CELL = ("algorithm", "client", "labels", "draw", "accuracy", "global_accuracy")


def method_folders(params: Params, dataset: str) -> dict[str, Path]:
    """Returns {method: folder of its results} of each method that the parameters ask for.

    PPPFL comes first, then the baselines, then the noisy ones.
    """
    generators = params.synthesis.generators
    folders = {}
    for name in generators:
        folders[f"pppfl/{name}"] = paths.personal(dataset, name) / f"pppfl-{name}"
    for algorithm in params.baselines.algorithms:
        for method in methods.reported(algorithm, generators):
            folders[method] = paths.baseline(dataset, algorithm) / method.replace("/", "-")
    for algorithm in params.dp_baselines.algorithms:
        folders[algorithm] = paths.dp_baseline(dataset, algorithm) / algorithm
    return folders


def read(params: Params, dataset: str) -> dict:
    """Reads everything that the report shows of one data set.

    Returns:
        "left_out": {METHOD: why it did not run}.
        "results", "curves", "costs": {METHOD: results.json, rows of floats, cost.json}, of the
            methods that ran.
        "correct": {METHOD: {CLIENT: bool [n], which images of its test part are right}}.
        "ledgers": {CLIENT: Ledger.summary()}.
        "new_clients": {GENERATOR: results.json of that stage}; empty if no client was held out.
        "cards", "quality", "grids": {CLIENT: {GENERATOR: card.json, quality.json, PNG bytes}}.

    Raises:
        UserError: A file is missing, cannot be read, or lacks what the report needs.
    """
    folders = method_folders(params, dataset)
    generators = params.synthesis.generators
    clients = list(params.clients)
    left_out = {}
    results = {}
    for method, folder in list(folders.items()):
        content = _results(folder / "results.json", clients)
        if "left_out" in content:
            left_out[method] = content["left_out"]
            del folders[method]
        else:
            results[method] = content

    def each(read_set: Callable) -> dict:
        by_client = {}
        for client in clients:
            by_client[client] = {}
            for generator in generators:
                by_client[client][generator] = read_set(dataset, client, generator)
        return by_client

    return {
        "left_out": left_out,
        "results": results,
        "curves": _each_method(folders, "rounds.csv", _curve),
        "correct": _correct(folders, clients),
        "costs": _each_method(folders, paths.COST, _cost),
        "ledgers": {client: releases.summary(params, dataset, client) for client in clients},
        "new_clients": _new_clients(dataset, generators),
        "cards": each(_card),
        "quality": each(_quality),
        "grids": each(_grid),
    }


def _each_method(folders: dict[str, Path], name: str, read_file: Callable) -> dict:
    """Reads the file of that name in the folder of each method."""
    contents = {}
    for method, folder in folders.items():
        contents[method] = read_file(folder / name)
    return contents


def _results(path: Path, clients: list[str]) -> dict:
    """Returns the results as the file has them; for a method that was left out, the reason alone."""
    content = read_json(path)
    if "left_out" in content:
        return content
    require(path, content, *(metric.best_key for metric in METRICS), "selected", "candidates")
    require(path, content, "epsilon_max", "guarantee", "clients")
    others = [metric.name for metric in other_metrics()]
    require(path, content["selected"], "round", "mean_accuracy", "worst", *others)
    require(path, content["clients"], *clients)
    if content.get("health"):
        require(path, content["health"], "collapsed", "why")
    for client in clients:
        scored = content["clients"][client]
        require(path, scored, "before", "after", "global_before", "global_after")
        for moment in ("before", "after"):
            require(path, scored[moment], *(metric.name for metric in METRICS))
    statements = content.get("statements")
    for client in clients if statements is not None else []:
        require(path, statements, client)
        require(path, statements[client], *STATEMENT)
    return content


def _curve(path: Path) -> list[dict]:
    """Returns one dict of floats per round; a figure that a round lacks is absent."""
    rows = []
    try:
        for row in read_csv(path):
            rows.append({name: float(cell) for name, cell in row.items() if cell != ""})
    except (TypeError, ValueError):
        raise UserError(f"Could not read {path}: a cell is not a number. {AGAIN}") from None
    for row in rows:
        require(path, row, "round", "global_accuracy")
    require(path, rows[-1] if rows else {}, "accuracy_after")
    return rows


def _correct(folders: dict[str, Path], clients: list[str]) -> dict[str, dict]:
    """Returns which test images each method classifies rightly, by client.

    All methods must have the same test images: only then can two be compared image by image.
    """
    correct = {}
    first_counts = None
    for method, folder in folders.items():
        path = folder / paths.CORRECT
        content = read_arrays(path)
        require(path, content, *clients)
        correct[method] = {}
        counts = {}
        for client in clients:
            correct[method][client] = content[client]
            counts[client] = len(content[client])
        first_counts = first_counts or counts
        if counts != first_counts:
            raise UserError(f"{path} is of other test images than the other methods. {AGAIN}")
    return correct


def _cost(path: Path) -> dict:
    """Returns what a method's training cost."""
    content = read_json(path)
    require(path, content, "rounds", "bytes_down", "bytes_up", "seconds")
    return content


def _new_clients(dataset: str, generators: list[str]) -> dict[str, dict]:
    """Returns the study of new clients of each generator for which clients were held out."""
    studies = {}
    for generator in generators:
        path = paths.new_clients(dataset, generator) / "results.json"
        content = read_json(path)
        require(path, content, "held_out", "algorithms", "privacy", "skipped", "cells")
        for cell in content["cells"]:
            require(path, cell, *CELL)
        if content["held_out"]:
            studies[generator] = content
    return studies


def _card(dataset: str, client: str, generator: str) -> dict:
    """Returns the card of one synthetic set."""
    path = paths.synthetic(dataset, client, generator) / "card.json"
    content = read_json(path)
    require(path, content, "privacy", "weak")
    require(path, content["privacy"], *STATEMENT)
    return content


def _quality(dataset: str, client: str, generator: str) -> dict:
    """Returns the private scores of one synthetic set."""
    path = paths.quality(dataset, client, generator) / "quality.json"
    content = read_json(path)
    require(path, content, "tstr_accuracy", "tstr_accuracy_global", *shown_fields())
    require(path, content, "records", "warnings")
    return content


def _grid(dataset: str, client: str, generator: str) -> bytes:
    """Returns the picture of one synthetic set, as PNG bytes."""
    path = paths.synthetic(dataset, client, generator) / "grid.png"
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(
            f"Could not read {path}: {error.strerror}. Run export_synthetic again."
        ) from error
