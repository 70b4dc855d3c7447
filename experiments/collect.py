"""Collects what is stored of a finished run: figures of its methods by client.

Images, models and labels are never stored. Inception scores are taken with a judge, a classifier
trained on the real pool. It is an experimenter's instrument, which has seen every client's records.
Nothing of it may leave.
"""

import hashlib
from pathlib import Path

import numpy as np
from torch import nn

from experiments.plans import Run
from pipelines import paths, releases
from pipelines.config import Params
from pipelines.datasets import labelled_images
from pipelines.evaluation import image_quality
from pipelines.evaluation.metrics import METRICS
from pipelines.evaluation.scoring import inception_score, scores
from pipelines.federation.home import results
from pipelines.files import new_folder, read_arrays, read_csv, read_json, write_arrays
from pipelines.reporting import collect
from pipelines.training import classifier
from pipelines.training.tensors import device, state_of, with_state

# These fields of a new-clients study's results.json are stored.
STUDY = ("algorithms", "labels", "skipped", "cells")
COST = ("rounds", "bytes_down", "bytes_up", "seconds", "seconds_at_home")
JUDGE_RECIPE = {"epochs": 4, "batch": 128, "learning_rate": 2e-3, "one_cycle": True}
JUDGE_SEED = 0


def figures(params: Params, run: Run) -> dict:
    """Returns the figures of a run from the workspace that it left.

    Args:
        params: The run's own parameters, overrides included.
        run: What the run trained, and what is stored of it.

    Returns:
        {"methods": {METHOD: see `_method`}}, and what else the run asks for: "shared_per_round" and
        "query_per_round" by generator, "fidelity", "newcomers".

    Raises:
        UserError: A file is missing or cannot be read.
    """
    folders = collect.method_folders(params, run.dataset)
    stored = {"methods": {}}
    for method in run.methods:
        stored["methods"][method] = _method(folders[method])
    generators = params.synthesis.generators
    if run.rounds:
        stored["shared_per_round"] = {}
        stored["query_per_round"] = {}
        for name in generators:
            stored["shared_per_round"][name] = _shared(params, run.dataset, name)
            stored["query_per_round"][name] = _query(run.dataset, name)
    if run.fidelity:
        stored["fidelity"] = _fidelity(params, run.dataset)
    if run.newcomers:
        (generator,) = generators
        stored["newcomers"] = _newcomers(run.dataset, generator)
    return stored


def trained_judge(params: Params, dataset: str) -> nn.Module:
    """Returns the data set's own network, trained on the real pool, last iterate.

    It is trained once for a pool and stored in `.scratch`, which Git ignores.
    """
    pool = labelled_images.load(paths.prepared(dataset) / "pool.npz")
    network = classifier.new(params.profiles[dataset], JUDGE_SEED, device(params.device))
    identity = f"{releases.digest(pool)} {JUDGE_RECIPE} {network}"
    stamp = hashlib.sha256(identity.encode()).hexdigest()[:16]
    folder = paths.SCRATCH / "judges" / f"{dataset}-{stamp}"
    if not folder.exists():
        classifier.fit(network, pool, seed=JUDGE_SEED, **JUDGE_RECIPE)
        with new_folder(folder) as new:
            write_arrays(new / "weights.safetensors", state_of(network))
    return with_state(network, read_arrays(folder / "weights.safetensors"))


def _method(folder: Path) -> dict:
    """Returns a method's figures over the rounds, its cost, and its scores by client.

    A client has on its own test part every metric of METRICS after fine-tuning, and NAME_before
    before it. On the global test set it has accuracy, "global_before" and "global_after", and
    "global_elsewhere", read without the client's class shares.
    """
    content = read_json(folder / "results.json")
    cost = read_json(folder / paths.COST)
    names = ["candidates", *(metric.best_key for metric in METRICS), "epsilon_max", "guarantee"]
    method = {}
    for name in names:
        method[name] = content[name]
    for name in COST:
        method[name] = cost[name]
    for name in ("round", "mean_accuracy"):
        method[f"selected_{name}"] = content["selected"][name]
    method["upper_bound"] = content.get("upper_bound", False)
    method["clients"] = {}
    for name, scored in content["clients"].items():
        method["clients"][name] = _client_scores(scored)
    return method


def _client_scores(scored: dict) -> dict[str, float]:
    """Returns the stored scores of one client, from its part of results.json."""
    client_scores = dict(scored["after"])
    for name, value in scored["before"].items():
        client_scores[f"{name}_before"] = value
    client_scores["global_before"] = scored["global_before"]
    client_scores["global_after"] = scored["global_after"]
    elsewhere = scored.get("global_prior_off", scored["global_after"])
    client_scores["global_elsewhere"] = elsewhere
    return client_scores


def _newcomers(dataset: str, generator: str) -> dict:
    """Returns the cells of the clients that were held out, and what the shared training cost."""
    folder = paths.new_clients(dataset, generator)
    study = read_json(folder / "results.json")
    costs = read_json(folder / paths.COST)
    return {"generator": generator, **{name: study[name] for name in STUDY}, **costs}


def _shared(params: Params, dataset: str, generator: str) -> list[float]:
    """Returns PPPFL's accuracy on the global test set before the first round and after each."""
    test_images = labelled_images.load(paths.prepared(dataset) / "test.npz")
    network = classifier.new(params.profiles[dataset], 0, device(params.device))
    models = results.load_models(paths.initial(dataset, generator) / "rounds.safetensors")
    accuracies = []
    for model in models:
        accuracies.append(scores(with_state(network, model), test_images)["accuracy"])
    return accuracies


def _query(dataset: str, generator: str) -> list[float]:
    """Returns the clients' mean accuracy on synthetic query images after the inner steps.

    There is one value for each round.
    """
    rows = read_csv(paths.initial(dataset, generator) / "rounds.csv")
    return [float(row["query_accuracy"]) for row in rows]


def _fidelity(params: Params, dataset: str) -> dict:
    """Returns how close the synthetic sets are to real images.

    Returns:
        "judge_accuracy" and "inception_score_real", both on the global test set, and "clients":
        {GENERATOR: {CLIENT: see `_client_fidelity`}}.
    """
    judge = trained_judge(params, dataset)
    test_images = labelled_images.load(paths.prepared(dataset) / "test.npz")
    by_generator = {}
    for generator in params.synthesis.generators:
        by_generator[generator] = {}
        for client in params.clients:
            fidelity = _client_fidelity(dataset, judge, client, generator)
            by_generator[generator][client] = fidelity
    return {
        "judge_accuracy": scores(judge, test_images)["accuracy"],
        "inception_score_real": inception_score(judge, test_images),
        "clients": by_generator,
    }


def _client_fidelity(
    dataset: str, judge: nn.Module, client: str, generator: str
) -> dict[str, float]:
    """Returns a set's shown image metrics with their floors, and its score under the judge."""
    quality = read_json(paths.quality(dataset, client, generator) / "quality.json")
    images = labelled_images.load(paths.synthetic(dataset, client, generator) / "images.npz")
    fidelity = {}
    for name in image_quality.shown_fields():
        fidelity[name] = np.nan if quality[name] is None else quality[name]
    return {**fidelity, "inception_score": inception_score(judge, images)}
