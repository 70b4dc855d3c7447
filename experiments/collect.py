"""What is kept of a finished run: figures of its methods by client, never images, models or labels."""

from functools import partial

import numpy as np

from experiments import judge
from experiments.plans import Run
from pipelines import paths
from pipelines.config import Params
from pipelines.datasets import labelled_images
from pipelines.evaluation import inception
from pipelines.evaluation.metrics import scores
from pipelines.federation.home import results
from pipelines.files import read_csv, read_json
from pipelines.reporting import collect
from pipelines.training import classify
from pipelines.training.tensors import device, with_state

METHOD = ("candidates", "bmta", "bmt_f1", "epsilon_max", "guarantee")
STUDY = (
    "algorithms",
    "labels",
    "skipped",
    "cells",
)  # of results.json of clients that were held out
COST = ("rounds", "bytes_down", "bytes_up", "seconds", "seconds_at_home")


def figures(params: Params, run: Run) -> dict:
    """{"methods": {METHOD: see `_method`}} and what else the run asks for, from the workspace that it left.

    Args:
        params: the run's own, overrides included.

    Raises:
        UserError: a file is missing or cannot be read.
    """
    folders = collect.method_folders(params, run.dataset)
    found = {"methods": {method: _method(folders[method], run.rounds) for method in run.methods}}
    if run.rounds:
        found["shared_per_round"] = {
            name: _shared(params, run.dataset, name) for name in params.synthesis.generators
        }
        found["query_per_round"] = {
            name: _query(run.dataset, name) for name in params.synthesis.generators
        }
    if run.fidelity:
        found["fidelity"] = _fidelity(params, run.dataset)
    if run.newcomers:
        (generator,) = params.synthesis.generators
        folder = paths.new_clients(run.dataset, generator)
        study, costs = read_json(folder / "results.json"), read_json(folder / paths.COST)
        found["newcomers"] = {
            "generator": generator,
            **{name: study[name] for name in STUDY},
            **costs,
        }
    return found


def _method(folder, rounds: bool) -> dict:
    """Its figures over the rounds and its cost, and by client: scores on the client's own test part, {"accuracy",
    "macro_f1"} after fine-tuning and {"accuracy_before", "macro_f1_before"} before it, and its accuracy on the global
    test set, {"global_before", "global_after"}."""
    content, cost = read_json(folder / "results.json"), read_json(folder / paths.COST)
    clients = {
        client: {
            **entry["after"],
            **{f"{name}_before": value for name, value in entry["before"].items()},
            **{f"global_{when}": entry[f"global_{when}"] for when in ("before", "after")},
        }
        for client, entry in content["clients"].items()
    }
    found = {name: content[name] for name in METHOD} | {name: cost[name] for name in COST}
    found |= {f"selected_{name}": content["selected"][name] for name in ("round", "mean_accuracy")}
    found["upper_bound"] = content.get("upper_bound", False)
    if rounds:
        curve = [row for row in read_csv(folder / "rounds.csv") if row["accuracy_after"]]
        found["curve"] = [
            {name: float(row[name]) for name in ("round", "accuracy_after")} for row in curve
        ]
    return {**found, "clients": clients}


def _shared(params: Params, dataset: str, generator: str) -> list[float]:
    """Accuracy on the global test set of PPPFL's model before the first round and after each."""
    everyone = labelled_images.load(paths.prepared(dataset) / "test.npz")
    network = classify.new(params.profiles[dataset], 0, device(params.device))
    models = results.load_models(paths.initial(dataset, generator) / "rounds.safetensors")
    return [scores(with_state(network, model), everyone)["accuracy"] for model in models]


def _query(dataset: str, generator: str) -> list[float]:
    """The clients' mean accuracy on synthetic query images after the inner steps, in each round."""
    rows = read_csv(paths.initial(dataset, generator) / "rounds.csv")
    return [float(row["query_accuracy"]) for row in rows]


def _fidelity(params: Params, dataset: str) -> dict:
    """{"judge_accuracy", "inception_score_real": of the global test set, "clients": {GENERATOR: {CLIENT: {"fid",
    "fid_floor", "inception_score"}}}}."""
    network = judge.trained(params, dataset)
    everyone = labelled_images.load(paths.prepared(dataset) / "test.npz")
    one = partial(_client, dataset, network)
    generators = params.synthesis.generators
    return {
        "judge_accuracy": scores(network, everyone)["accuracy"],
        "inception_score_real": inception.score(network, everyone),
        "clients": {
            name: {client: one(client, name) for client in params.clients} for name in generators
        },
    }


def _client(dataset: str, network, client: str, generator: str) -> dict[str, float]:
    quality = read_json(paths.quality(dataset, client, generator) / "quality.json")
    made = labelled_images.load(paths.synthetic(dataset, client, generator) / "images.npz")
    fids = {
        name: np.nan if quality[name] is None else quality[name] for name in ("fid", "fid_floor")
    }
    return {**fids, "inception_score": inception.score(network, made)}
