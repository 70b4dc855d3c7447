"""train_dp_baseline@DATASET-ALGORITHM: the clients' budgets spent on noisy gradients instead of images. Private."""

import shutil
from functools import partial
from pathlib import Path

from pipelines import paths, releases, seeds
from pipelines.config import Params
from pipelines.datasets import containers, shards
from pipelines.datasets.secrets import season
from pipelines.datasets.shards import Shard
from pipelines.federation import outcome, personalise, rounds
from pipelines.federation.dp import dpsgd
from pipelines.federation.dp.account import Account
from pipelines.federation.engines.inprocess import InProcess
from pipelines.files import new_folder, read_json, write_csv, write_json
from pipelines.privacy import noise
from pipelines.rules import mistake
from pipelines.training import classify
from pipelines.training.tensors import device, state_of
from stages.cli import main

COST, LOG = "cost.json", "log.csv"  # beside the release in the ledger's store: a later run makes nothing to tell of


def run(params: Params, dataset: str, algorithm: str) -> None:
    own = shards.read_all(dataset, list(params.clients))
    settings, profile = params.training(dataset, algorithm), params.profiles[dataset]
    profile = profile.model_copy(update={"classifier": settings.network or profile.classifier})
    seed = seeds.derive(params.seed, "init", dataset)
    build = partial(classify.new, profile, seed, device(params.device), activation=settings.activation)
    accounts = {client: Account(*params.budget(client), settings) for client in own}
    sources = {client: _noise(params, dataset, algorithm, client) for client in own}
    for client, account in accounts.items():
        _say(client, account)
    planned = {client: accounts[client].statement(sources[client], steps=accounts[client].affordable) for client in own}
    # a reply depends on everyone's data and noise, by the model that was broadcast: one change, and all release anew
    together = [f"{client} {releases.digest(own[client].train)} {params.budget(client)}" for client in sorted(own)]
    entries = {
        client: dpsgd.entry(planned[client], data=together, client=client, profile=profile, seed=params.seed)
        for client in own
    }
    ledgers = {client: releases.ledger_of(params, dataset, client) for client in own}
    store = releases.made_once(ledgers, entries, partial(_train, params, own, accounts, sources, build))
    statements = {client: releases.statement(params, dataset, client, entries[client].fingerprint) for client in own}
    models = outcome.load_models(store / "rounds.safetensors")
    found = personalise.through_rounds(
        models,
        own,
        containers.load(paths.prepared(dataset) / "test.npz"),
        build=build,
        settings=params.training(dataset, "fine_tune"),
        seed=seeds.derive(params.seed, "fine_tune", dataset),
    )
    cost = read_json(store / COST) | {"seconds_at_home": found.seconds}
    summary = {**found.summary, **_privacy(statements)}
    with new_folder(paths.dp_baseline(dataset, algorithm)) as folder:
        outcome.save_method(folder, algorithm, summary, found.curve, found.personal, correct=found.correct, cost=cost)
        shutil.copy(store / LOG, folder / algorithm / LOG)
        season(folder, dataset, "all-clients")
    print(f"{dataset} {algorithm}: {outcome.line(summary)}")


def _train(params: Params, own: dict[str, Shard], accounts: dict, sources: dict, build, folder: Path) -> None:
    """The federation's rounds; the global model of each is stored, and what was logged."""
    settings = next(iter(accounts.values())).settings
    handlers = {
        client: dpsgd.Client(build(), shard.train, accounts[client], sources[client].torch_generator("cpu")).update
        for client, shard in own.items()
    }
    start = dpsgd.server(state_of(build()), settings.averaging)
    history = rounds.run(start, dpsgd.server_step, InProcess(handlers), rounds=settings.rounds, name="dpsgd")
    write_json(folder / COST, history.cost)
    write_csv(folder / LOG, history.curves)
    outcome.save_models(folder / "rounds.safetensors", history.models)


def _say(client: str, account: Account) -> None:
    """
    Raises:
        UserError: the budget buys no step.
    """
    if not account.affordable:
        rule = f"null, or enough for a step within epsilon {account.epsilon:g} of {client}"
        raise mistake("dp_baselines.dpsgd.noise_multiplier", account.noise_multiplier, rule)
    steps = f"{account.affordable} steps" if account.settings.noise_multiplier else "all steps"
    print(f"{client}: noise multiplier {account.noise_multiplier:.3f}, {steps} for epsilon {account.epsilon:g}")


def _privacy(statements: dict[str, dict]) -> dict:
    formal = all(statement["guarantee"] == "formal" for statement in statements.values())
    return {
        "epsilon_max": max(float(statement["epsilon"]) for statement in statements.values()),
        "guarantee": "formal" if formal else "none",
        "statements": statements,
    }


def _noise(params: Params, dataset: str, algorithm: str, client: str) -> noise.Noise:
    test_seed = seeds.derive(params.seed, "test noise", dataset, algorithm, client)
    return noise.source(params.privacy.noise, test_seed)


if __name__ == "__main__":
    main(run, "dataset", "algorithm")
