"""Builds summary.json: one data set's methods and clients.

Accuracies are of the last round's model. `selected_*` are of the round that private validation
parts select, among `candidates`. `bmta` and `bmt_f1` alone are selected on test data: they are the
paper's maxima over the same rounds.
"""

import numpy as np

from pipelines.config import Params
from pipelines.evaluation.image_quality import shown_fields
from pipelines.evaluation.metrics import METRICS, other_metrics, over_clients
from pipelines.privacy.statement import not_covered
from pipelines.reporting import budgets, choice, client_gains, comparisons, new_clients
from pipelines.reporting.collect import STATEMENT

COST = ("rounds", "bytes_up", "bytes_down", "seconds", "seconds_at_home")


def build(params: Params, dataset: str, run: dict) -> dict:
    """Returns the summary of a run.

    Args:
        params: The parameters of the run.
        dataset: Name of the data set.
        run: What `collect.read` returned.

    Returns:
        "dataset", "seed", "methods": {NAME: figures}, "left_out": {NAME: why it did not run},
        "other_network": [a method that trains another network than `local` does],
        "choice": what `choice.of_run` returned, "comparisons": [PPPFL against a rival],
        "new_clients": {GENERATOR: [PPPFL against a rival]} and "clients": {NAME: figures}.
    """
    methods = {}
    for name in run["results"]:
        intervals = comparisons.of_method(name, run, params.seed)
        methods[name] = _method(name, run, list(params.clients)) | intervals
    for name, figures in methods.items():
        figures["gains"] = client_gains.at_home(name, run, params.seed)
        figures["elsewhere"] = client_gains.elsewhere(name, methods, params.seed)
    clients = {}
    for name in params.clients:
        clients[name] = _client(name, params, dataset, run)
    return {
        "dataset": dataset,
        "seed": params.seed,
        "methods": methods,
        "left_out": run["left_out"],
        "other_network": _other_network(params, dataset, methods),
        "choice": choice.of_run(methods, run, params.seed),
        "comparisons": comparisons.of_pppfl(run, params.synthesis.generators, params.seed),
        "new_clients": new_clients.differences(run["new_clients"], params.seed),
        "clients": clients,
    }


def _other_network(params: Params, dataset: str, methods: dict[str, dict]) -> list[str]:
    """Returns the methods that train another network than training alone does."""
    usual = params.profiles[dataset].classifier
    found = []
    for name in params.dp_baselines.algorithms:
        network = params.training(dataset, name).network or usual
        if name in methods and network != usual:
            found.append(name)
    return found


def _method(name: str, run: dict, clients: list[str]) -> dict:
    """Returns a method's figures over clients, each client counting alike.

    They are before and after fine-tuning at home; `global` is the test set that all share.
    `clients_elsewhere` is each client's accuracy there, read without its own class shares.
    """
    results = run["results"][name]
    after = {}
    accuracies = {}
    elsewhere = {}
    before = []
    global_before = []
    global_after = []
    for client in clients:
        scored = results["clients"][client]
        after[client] = scored["after"]
        accuracies[client] = scored["after"]["accuracy"]
        elsewhere[client] = scored.get("global_prior_off", scored["global_after"])
        before.append(scored["before"]["accuracy"])
        global_before.append(scored["global_before"])
        global_after.append(scored["global_after"])
    means = over_clients(after)
    return {
        "mean_accuracy": means["mean_accuracy"],
        "worst_accuracy": means["worst_accuracy"],
        "worst_client": min(clients, key=accuracies.get),
        "spread_accuracy": means["spread_accuracy"],
        **{f"mean_{metric.name}": means[f"mean_{metric.name}"] for metric in other_metrics()},
        "mean_accuracy_before": _mean(before),
        "mean_global_before": _mean(global_before),
        "mean_global_after": _mean(global_after),
        "mean_elsewhere": _mean(list(elsewhere.values())),
        **_selected(results),
        "epsilon_max": float(results["epsilon_max"]),
        "guarantee": results["guarantee"],
        "trust": results.get("trust", []),
        "upper_bound": results.get("upper_bound", False),
        "collapsed": _collapsed(results),
        "weak": _weak(name, run),
        **budgets.costliest(budgets.of_method(name, run)),
        **{field: run["costs"][name].get(field) for field in COST},
        "lost": run["costs"][name].get("lost", {}),
        "clients": accuracies,
        "clients_elsewhere": elsewhere,
    }


def _selected(results: dict) -> dict:
    """Returns the figures of the selected round, and those that test data selected."""
    selected = results["selected"]
    figures = {
        "selected_round": selected["round"],
        "selected_accuracy": selected["mean_accuracy"],
        "selected_worst": selected["worst"],
    }
    for metric in other_metrics():
        figures[f"selected_{metric.name}"] = selected[metric.name]
    figures["candidates"] = results["candidates"]
    for metric in METRICS:
        figures[metric.best_key] = results[metric.best_key]
    return figures


def _collapsed(results: dict) -> str:
    """Returns why the shared model is of no use; empty if it is (federation/health.py)."""
    health = results.get("health") or {}
    return health["why"] if health.get("collapsed") else ""


def _weak(method: str, run: dict) -> bool:
    """Returns whether the plan of a client's set said before it was made that it is noise."""
    generator = method.partition("/")[2]
    return any(cards[generator]["weak"] for cards in run["cards"].values()) if generator else False


def _client(name: str, params: Params, dataset: str, run: dict) -> dict:
    """Returns one client's budget, its releases, and what they cost together."""
    epsilon, delta = params.budget(name)
    generators = {}
    for generator in params.synthesis.generators:
        generators[generator] = _release(name, generator, run)
    baselines = {}
    for method in params.dp_baselines.algorithms:
        if method in run["results"]:
            baselines[method] = _dp_baseline(name, method, run)
    releases = [*generators.values(), *baselines.values()]
    return {
        "epsilon": epsilon,
        "delta": delta,
        "records": next((scores["records"] for scores in run["quality"][name].values()), None),
        "generators": generators,
        "dp_baselines": baselines,
        "total": budgets.total(releases, delta),
        "not_covered": not_covered(releases, params.profiles[dataset].classifier),
        "ledger": run["ledgers"][name],
        "cap": params.clients[name].lifetime_epsilon,
    }


def _release(client: str, generator: str, run: dict) -> dict:
    """Returns one synthetic set's price and what it bought.

    Accuracies before and after fine-tuning are PPPFL's, from all clients' sets of that generator.
    """
    card = run["cards"][client][generator]
    scores = run["quality"][client][generator]
    released = {}
    if "released_accuracy" in scores:
        released["released_accuracy"] = scores["released_accuracy"]
    return {
        "tstr_accuracy": scores["tstr_accuracy"],
        "tstr_accuracy_global": scores["tstr_accuracy_global"],
        **released,
        **{field: scores[field] for field in shown_fields()},
        **_home(run["results"][f"pppfl/{generator}"], client),
        **_price(card["privacy"]),
        "weak": card["weak"],
        "warnings": scores["warnings"],
    }


def _dp_baseline(client: str, method: str, run: dict) -> dict:
    """Returns what noisy training cost a client and what it bought."""
    results = run["results"][method]
    return {**_home(results, client), **_price(results["statements"][client]), "weak": []}


def _home(results: dict, client: str) -> dict:
    """Returns a client's accuracies on its own test part, and whether the model is of use."""
    scored = results["clients"][client]
    return {
        "accuracy_before": scored["before"]["accuracy"],
        "accuracy_after": scored["after"]["accuracy"],
        "collapsed": _collapsed(results),
    }


def _price(statement: dict) -> dict:
    """Returns the statement's fields; JSON holds an infinite epsilon or mu as text.

    `trust` is None where nobody but the client has to be trusted.
    """
    price = {"trust": statement.get("trust")}
    for field in STATEMENT:
        price[field] = statement[field]
    for field in ("epsilon", "mu"):
        if statement[field] is not None:
            price[field] = float(statement[field])
    return price


def _mean(values: list[float]) -> float:
    """Returns the mean; clients count alike."""
    return float(np.mean(values))
