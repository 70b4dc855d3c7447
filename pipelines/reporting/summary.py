"""summary.json: one data set's methods and clients. Accuracies are of the last round's model. `selected_*` are of the
round that private validation parts select, among `candidates`; `bmta` and `bmt_f1` alone are selected on test data: the
paper's maxima over the same rounds."""

import numpy as np

from pipelines.config import Params
from pipelines.reporting import budgets, comparisons, new_clients
from pipelines.reporting.collect import STATEMENT

COST = ("rounds", "bytes_up", "bytes_down", "seconds", "seconds_at_home")


def build(params: Params, dataset: str, run: dict) -> dict:
    """The summary of `run` (collect.read): {"dataset", "seed", "methods": {NAME: ...}, "left_out": {NAME: why it did
    not run}, "comparisons": [PPPFL against a rival], "new_clients": {GENERATOR: [PPPFL against a rival]}, "clients":
    {NAME: ...}}."""
    clients = list(params.clients)
    return {
        "dataset": dataset,
        "seed": params.seed,
        "methods": {
            name: _method(name, run, clients) | comparisons.of_method(name, run, params.seed)
            for name in run["results"]
        },
        "left_out": run["left_out"],
        "comparisons": comparisons.of_pppfl(run, params.synthesis.generators, params.seed),
        "new_clients": new_clients.differences(run["new_clients"], params.seed),
        "clients": {name: _client(name, params, run) for name in clients},
    }


def _method(name: str, run: dict, clients: list[str]) -> dict:
    """Every client counts alike. Before and after fine-tuning at home; `global` is the test set that all share."""
    results = run["results"][name]
    entries = [results["clients"][client] for client in clients]
    accuracy = np.array([entry["after"]["accuracy"] for entry in entries])
    return {
        "mean_accuracy": _mean(accuracy),
        "worst_accuracy": float(accuracy.min()),
        "worst_client": clients[int(accuracy.argmin())],
        "spread_accuracy": float(accuracy.std()),
        "mean_macro_f1": _mean(entry["after"]["macro_f1"] for entry in entries),
        "mean_accuracy_before": _mean(entry["before"]["accuracy"] for entry in entries),
        "mean_global_before": _mean(entry["global_before"] for entry in entries),
        "mean_global_after": _mean(entry["global_after"] for entry in entries),
        "selected_round": results["selected"]["round"],
        "selected_accuracy": results["selected"]["mean_accuracy"],
        "selected_worst": results["selected"]["worst"],
        "selected_macro_f1": results["selected"]["macro_f1"],
        "candidates": results["candidates"],
        "bmta": results["bmta"],
        "bmt_f1": results["bmt_f1"],
        "epsilon_max": float(results["epsilon_max"]),
        "guarantee": results["guarantee"],
        "upper_bound": results.get("upper_bound", False),
        "collapsed": _collapsed(results),
        "weak": _weak(name, run),
        **budgets.costliest(budgets.of_method(name, run)),
        **{field: run["costs"][name].get(field) for field in COST},
        "lost": run["costs"][name].get("lost", {}),
        "clients": {
            client: entry["after"]["accuracy"]
            for client, entry in zip(clients, entries, strict=True)
        },
    }


def _collapsed(results: dict) -> str:
    """Why the shared model is of no use; empty where nothing was found (federation/health.py)."""
    health = results.get("health") or {}
    return health["why"] if health.get("collapsed") else ""


def _weak(method: str, run: dict) -> bool:
    """Returns whether the plan of a client's set said before it was made that it is noise."""
    generator = method.partition("/")[2]
    return any(cards[generator]["weak"] for cards in run["cards"].values()) if generator else False


def _client(name: str, params: Params, run: dict) -> dict:
    epsilon, delta = params.budget(name)
    generators = {
        generator: _release(name, generator, run) for generator in params.synthesis.generators
    }
    ran = [method for method in params.dp_baselines.algorithms if method in run["results"]]
    baselines = {method: _dp_baseline(name, method, run) for method in ran}
    return {
        "epsilon": epsilon,
        "delta": delta,
        "records": next((scores["records"] for scores in run["quality"][name].values()), None),
        "generators": generators,
        "dp_baselines": baselines,
        "total": budgets.total([*generators.values(), *baselines.values()], delta),
        "ledger": run["ledgers"][name],
    }


def _release(client: str, generator: str, run: dict) -> dict:
    """One generator's price and what it bought; accuracies are PPPFL's, from all clients' sets of that generator."""
    card, scores = run["cards"][client][generator], run["quality"][client][generator]
    return {
        "tstr_accuracy": scores["tstr_accuracy"],
        "tstr_accuracy_global": scores["tstr_accuracy_global"],
        "fid": scores["fid"],
        "fid_floor": scores["fid_floor"],
        **_home(run["results"][f"pppfl/{generator}"], client),
        **_price(card["privacy"]),
        "weak": card["weak"],
        "warnings": scores["warnings"],
    }


def _dp_baseline(client: str, method: str, run: dict) -> dict:
    results = run["results"][method]
    return {**_home(results, client), **_price(results["statements"][client]), "weak": []}


def _home(results: dict, client: str) -> dict:
    entry = results["clients"][client]
    scores = {f"accuracy_{moment}": entry[moment]["accuracy"] for moment in ("before", "after")}
    return {**scores, "collapsed": _collapsed(results)}


def _price(statement: dict) -> dict:
    """The statement's fields; an infinite epsilon or mu comes from JSON as text."""
    numbers = {
        field: float(statement[field])
        for field in ("epsilon", "mu")
        if statement[field] is not None
    }
    return {field: statement[field] for field in STATEMENT} | numbers


def _mean(values) -> float:
    return float(np.mean(list(values)))
