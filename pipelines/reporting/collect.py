"""Reading what a finished run left behind: plain dicts, one look at each file, no torch.

What is missing or lacks a field ends in one sentence that names the file.
"""

from pathlib import Path

from pipelines import methods, paths, releases
from pipelines.config import Params
from pipelines.errors import UserError
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
    "cost",
)
CELL = ("algorithm", "client", "labels", "draw", "accuracy", "global_accuracy")
SCORES = ("tstr_accuracy", "tstr_accuracy_global", "fid", "fid_floor", "records", "warnings")


def method_folders(params: Params, dataset: str) -> dict[str, Path]:
    """{method: folder of its results} for each method that the parameters ask for, PPPFL first."""
    folders = {
        f"pppfl/{name}": paths.personal(dataset, name) for name in params.synthesis.generators
    }
    for algorithm in params.baselines.algorithms:
        names = methods.reported(algorithm, params.synthesis.generators)
        folders |= dict.fromkeys(names, paths.baseline(dataset, algorithm))
    folders |= {name: paths.dp_baseline(dataset, name) for name in params.dp_baselines.algorithms}
    return {method: folder / method.replace("/", "-") for method, folder in folders.items()}


def read(params: Params, dataset: str) -> dict:
    """Everything the report shows of one data set.

    Returns:
        {"left_out": {METHOD: why it did not run}, and of the others "results": {METHOD: results.json}, "curves":
        {METHOD: rows of floats}, "correct": {METHOD: {CLIENT: bool [n], which images of its test part are right}},
        "costs": {METHOD: cost.json}; then "ledgers": {CLIENT: Ledger.summary()},
        "new_clients": {GENERATOR: results.json of that stage}, empty where no client was held out, and by client and
        generator "cards": card.json, "quality": quality.json, "grids": PNG bytes}.

    Raises:
        UserError: a file is missing, cannot be read, or lacks what the report needs.
    """
    folders, generators = method_folders(params, dataset), params.synthesis.generators
    clients = list(params.clients)
    results = {
        method: _results(folder / "results.json", clients) for method, folder in folders.items()
    }
    left_out = {
        method: content["left_out"] for method, content in results.items() if "left_out" in content
    }
    folders = {method: folder for method, folder in folders.items() if method not in left_out}

    def each(read_one) -> dict:
        return {
            client: {name: read_one(dataset, client, name) for name in generators}
            for client in clients
        }

    return {
        "left_out": left_out,
        "results": {method: results[method] for method in folders},
        "curves": {method: _curve(folder / "rounds.csv") for method, folder in folders.items()},
        "correct": _correct(folders, clients),
        "costs": {method: _cost(folder / paths.COST) for method, folder in folders.items()},
        "ledgers": {client: releases.summary(params, dataset, client) for client in clients},
        "new_clients": _new_clients(dataset, generators),
        "cards": each(_card),
        "quality": each(_quality),
        "grids": each(_grid),
    }


def _results(path: Path, clients: list[str]) -> dict:
    """Returns the results as the file has them; for a method that was left out, the reason alone."""
    content = read_json(path)
    if "left_out" in content:
        return content
    require(
        path,
        content,
        "bmta",
        "bmt_f1",
        "selected",
        "candidates",
        "epsilon_max",
        "guarantee",
        "clients",
    )
    require(path, content["selected"], "round", "mean_accuracy", "worst", "macro_f1")
    require(path, content["clients"], *clients)
    if content.get("health"):
        require(path, content["health"], "collapsed", "why")
    for client in clients:
        entry = content["clients"][client]
        require(path, entry, "before", "after", "global_before", "global_after")
        for moment in ("before", "after"):
            require(path, entry[moment], "accuracy", "macro_f1")
    statements = content.get("statements")
    for client in clients if statements is not None else []:
        require(path, statements, client)
        require(path, statements[client], *STATEMENT)
    return content


def _curve(path: Path) -> list[dict]:
    try:
        rows = [
            {name: float(cell) for name, cell in row.items() if cell != ""}
            for row in read_csv(path)
        ]
    except (TypeError, ValueError):
        raise UserError(f"Could not read {path}: a cell is not a number. {AGAIN}") from None
    for row in rows:
        require(path, row, "round", "global_accuracy")
    require(path, rows[-1] if rows else {}, "accuracy_after")
    return rows


def _correct(folders: dict[str, Path], clients: list[str]) -> dict[str, dict]:
    """Every method on the same test images: only then can two be compared image by image."""
    found, first = {}, None
    for method, folder in folders.items():
        path = folder / paths.CORRECT
        content = read_arrays(path)
        require(path, content, *clients)
        found[method] = {client: content[client] for client in clients}
        counts = {client: len(images) for client, images in found[method].items()}
        first = first or counts
        if counts != first:
            raise UserError(f"{path} is of other test images than the other methods. {AGAIN}")
    return found


def _cost(path: Path) -> dict:
    content = read_json(path)
    require(path, content, "rounds", "bytes_down", "bytes_up", "seconds")
    return content


def _new_clients(dataset: str, generators: list[str]) -> dict[str, dict]:
    found = {}
    for generator in generators:
        path = paths.new_clients(dataset, generator) / "results.json"
        content = read_json(path)
        require(path, content, "held_out", "algorithms", "privacy", "skipped", "cells")
        for cell in content["cells"]:
            require(path, cell, *CELL)
        found |= {generator: content} if content["held_out"] else {}
    return found


def _card(dataset: str, client: str, generator: str) -> dict:
    path = paths.synthetic(dataset, client, generator) / "card.json"
    content = read_json(path)
    require(path, content, "privacy", "weak")
    require(path, content["privacy"], *STATEMENT)
    return content


def _quality(dataset: str, client: str, generator: str) -> dict:
    path = paths.quality(dataset, client, generator) / "quality.json"
    content = read_json(path)
    require(path, content, *SCORES)
    return content


def _grid(dataset: str, client: str, generator: str) -> bytes:
    path = paths.synthetic(dataset, client, generator) / "grid.png"
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(
            f"Could not read {path}: {error.strerror}. Run export_synthetic again."
        ) from error
