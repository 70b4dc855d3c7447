"""train_dp_baseline@DATASET-ALGORITHM: the clients' budgets spent on noisy gradients instead of images. Private."""

import shutil
from functools import partial

from pipelines import paths, releases, seeds
from pipelines.config import Params
from pipelines.datasets import containers, shards
from pipelines.datasets.secrets import season
from pipelines.federation import outcome, personalise
from pipelines.federation.dp import dpsgd, federated
from pipelines.federation.dp.account import Account
from pipelines.federation.dp.filtered import account
from pipelines.files import new_folder, read_json
from pipelines.privacy import noise
from pipelines.rules import mistake
from pipelines.training import classify
from pipelines.training.tensors import device
from stages.cli import main


def run(params: Params, dataset: str, algorithm: str) -> None:
    own = shards.read_all(dataset, list(params.clients))
    settings, profile = params.training(dataset, algorithm), params.profiles[dataset]
    profile = profile.model_copy(update={"classifier": settings.network or profile.classifier})
    seed = seeds.derive(params.seed, "init", dataset)
    build = partial(classify.new, profile, seed, device(params.device), activation=settings.activation)
    accounts = {client: account(*params.budget(client), settings) for client in own}
    sources = {client: _noise(params, dataset, algorithm, client) for client in own}
    _say(algorithm, accounts)
    build()  # a network that does not fit the images must fail before anything is entered as spent
    planned = {client: accounts[client].statement(sources[client]) for client in own}
    # a reply depends on everyone's data and noise, by the model that was broadcast: one change, and all release anew
    public = containers.load(paths.prepared(dataset) / "public.npz")
    together = [f"{client} {releases.digest(own[client].train)} {params.budget(client)}" for client in sorted(own)]
    facts = {"data": [*together, releases.digest(public)], "profile": profile, "seed": params.seed}
    entries = {
        client: dpsgd.entry(algorithm, planned[client], accounts[client].cost, client=client, **facts) for client in own
    }
    ledgers = {client: releases.ledger_of(params, dataset, client) for client in own}
    data = {client: shard.train for client, shard in own.items()}
    store = releases.made_once(ledgers, entries, partial(federated.train, data, accounts, sources, build, public))
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
    cost = read_json(store / federated.COST) | {"seconds_at_home": found.seconds}
    summary = {**found.summary, **_privacy(statements)}
    with new_folder(paths.dp_baseline(dataset, algorithm)) as folder:
        outcome.save_method(folder, algorithm, summary, found.curve, found.personal, correct=found.correct, cost=cost)
        for name in (federated.LOG, federated.SPENT):
            shutil.copy(store / name, folder / algorithm / name)
        season(folder, dataset, "all-clients")
    print(f"{dataset} {algorithm}: {outcome.line(summary)}")


def _say(algorithm: str, accounts: dict[str, Account]) -> None:
    """
    Raises:
        UserError: no client's budget buys a step.
    """
    for client, its in accounts.items():
        steps = f"{its.affordable} steps" if its.affordable else "no step, so that it takes no part,"
        print(f"{client}: noise multiplier {its.first:.3f}, {steps} within epsilon {its.epsilon:g}")
    if not any(its.affordable for its in accounts.values()):
        most = max(its.epsilon for its in accounts.values())
        rule = f"enough for a step within some client's budget, the largest of which is epsilon {most:g}"
        asked = accounts[min(accounts)].settings.noise_multiplier
        raise mistake(f"dp_baselines.{algorithm}.noise_multiplier", asked, rule)


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
