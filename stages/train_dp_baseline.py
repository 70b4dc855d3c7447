"""train_dp_baseline@DATASET-ALGORITHM: the clients' budgets spent on noisy gradients or weights. Private."""

import shutil
from functools import partial
from pathlib import Path

from pipelines import paths, release_store, releases, seeds
from pipelines.config import Params, looks_at_images
from pipelines.config.data import Profile
from pipelines.config.values import Block, mistake
from pipelines.datasets import labelled_images, shards
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.salting import add_salt_file
from pipelines.datasets.shards import Shard
from pipelines.federation import health, noisy_run
from pipelines.federation.dp import own
from pipelines.federation.dp.account import Account
from pipelines.federation.engine import networked
from pipelines.federation.home import fine_tuning, results
from pipelines.federation.noisy_release import entry
from pipelines.federation.run_spec import Run
from pipelines.files import new_folder, read_json
from pipelines.privacy.ledger import Release
from pipelines.privacy.noise import Noise
from pipelines.privacy.statement import combined
from pipelines.synthesis import dp_moments, warm_start
from pipelines.synthesis.base import Plan
from pipelines.synthesis.release import public_space
from pipelines.training.tensors import State, state_of
from stages.cli import main


def run(params: Params, dataset: str, algorithm: str) -> None:
    why = params.left_out(dataset, algorithm)
    if why:
        with new_folder(paths.dp_baseline(dataset, algorithm)) as folder:
            results.leave_out(folder, algorithm, why)
            add_salt_file(folder, dataset, "all-clients")
        print(why)
        return
    profile = params.profiles[dataset]
    own_shards = shards.read_all(dataset, list(params.clients), profile)
    store, statements = _released(params, dataset, algorithm, own_shards)
    cost = read_json(store / noisy_run.COST)
    (model,) = results.load_models(store / "rounds.safetensors")[-1:]
    found = fine_tuning.through_rounds(
        [model],
        own_shards,
        labelled_images.load(paths.prepared(dataset) / "test.npz", profile),
        build=own.network(params, dataset, params.training(dataset, algorithm)),
        settings=params.training(dataset, "fine_tune"),
        seed=seeds.derive(params.seed, "fine_tune", dataset),
        first=cost["rounds"],
    )
    cost["seconds_at_home"] = found.seconds
    verdict = _health(params, dataset, algorithm, model)
    privacy = {**combined(list(statements.values())), "statements": statements}
    summary = {**found.summary, **privacy, "health": verdict.as_dict()}
    with new_folder(paths.dp_baseline(dataset, algorithm)) as folder:
        results.save_method(
            folder,
            algorithm,
            summary,
            found.curve,
            found.personal,
            correct=found.correct,
            cost=cost,
        )
        for name in (noisy_run.LOG, noisy_run.SPENT):
            shutil.copy(store / name, folder / algorithm / name)
        add_salt_file(folder, dataset, "all-clients")
    print(f"{dataset} {algorithm}: {results.line(summary)}")
    print(verdict.told(f"{dataset} {algorithm}"), end="")


def _health(params: Params, dataset: str, algorithm: str, model: State) -> health.Health:
    """Returns the verdict on the released model, by public images, or by its weights alone where none are declared.

    No private record is read, so it costs nothing.
    """
    settings = params.training(dataset, algorithm)
    build = own.network(params, dataset, settings)
    return health.check(
        model,
        state_of(build()),
        [labelled_images.load(paths.prepared(dataset) / "public.npz")],
        build=build,
        seed=seeds.derive(params.seed, "health", dataset, algorithm),
        remedy=health.remedy(dataset, f"dp_baselines.{algorithm}", settings),
    )


def _released(
    params: Params, dataset: str, algorithm: str, shards_of: dict[str, Shard]
) -> tuple[Path, dict[str, dict]]:
    """(the store of the joint run, {client: its statement})."""
    settings, profile = params.training(dataset, algorithm), params.profiles[dataset]
    build = own.network(params, dataset, settings)
    plans = {client: _plan(params, dataset, client, settings) for client in shards_of}
    accounts = {
        client: _account(params, algorithm, client, settings, plans[client]) for client in shards_of
    }
    sources = {client: own.source(params, dataset, algorithm, client) for client in shards_of}
    _say(algorithm, accounts)
    build()  # a network that does not fit the images must fail before anything is entered as spent
    public = labelled_images.load(paths.prepared(dataset) / "public.npz")
    _check_images(params, dataset, algorithm, len(public))
    data = {client: shard.train for client, shard in shards_of.items()}
    entries = _entries(
        params, dataset, algorithm, accounts, sources, plans, _facts(params, data, public)
    )
    ledgers = {client: releases.ledger_of(params, dataset, client) for client in data}
    entries = releases.match_recorded(ledgers, entries)
    if (
        params.federation.engine != "inprocess"
    ):  # each client's own process enters what it releases, at every attempt
        return releases.collect_once(
            ledgers, entries, partial(_over_network, params, Run(dataset, algorithm))
        )

    def first() -> tuple[dict, int]:
        if not settings.warm_start:
            return state_of(build()), 0
        seed = seeds.derive(params.seed, "warm_start", dataset, algorithm)
        return warm_start.trained(
            build(), settings.warm_start, profile.augmentation, data, plans, sources, seed
        )

    unfinished = release_store.unfinished(ledgers, entries)
    make = partial(
        noisy_run.train, data, accounts, sources, build, first, public, unfinished=unfinished
    )
    store = releases.make_once(ledgers, entries, make)
    made = {client: each.fingerprint for client, each in entries.items()}
    return store, {
        client: releases.statement(params, dataset, client, made[client]) for client in data
    }


def _entries(
    params: Params,
    dataset: str,
    algorithm: str,
    accounts: dict[str, Account],
    sources: dict[str, Noise],
    plans: dict[str, Plan | None],
    facts: list[str],
) -> dict[str, Release]:
    """Returns what each client's ledger enters."""
    settings, profile = params.training(dataset, algorithm), params.profiles[dataset]
    family = noisy_run.family(settings)
    return {
        client: entry(
            algorithm,
            family.VERSION,
            family.IDENTITY | dp_moments.IDENTITY.below("start"),
            its.statement(sources[client], params.budget(client)[1]),
            its.cost,
            client=client,
            start=_start(profile, plans[client]),
            profile=profile,
            seed=params.seed,
            data=facts,
        )
        for client, its in accounts.items()
    }


def _facts(params: Params, data: dict[str, Images], public: Images) -> list[str]:
    """What tells this joint release from another: a reply depends on everyone's data and noise, by the model that was
    broadcast. One change, and all release anew."""
    together = [
        f"{client} {releases.digest(data[client])} {params.budget(client)}"
        for client in sorted(data)
    ]
    facts = [*together, releases.digest(public)]
    if params.federation.engine != "inprocess":
        facts.append(f"over a network, {params.federation.on_loss} on loss")
    return facts


def _over_network(params: Params, run: Run, folder: Path) -> None:
    """
    Raises:
        UserError: the run starts from images that the clients would release together; or it failed.
    """
    if run.settings(params).warm_start:
        raise mistake(
            f"dp_baselines.{run.method}.warm_start",
            "a share",
            "null where federation.engine is 'nvflare'",
        )
    done = networked(params, run)
    noisy_run.keep(folder, done.history, done.history.cost, done.spent)


def _plan(params: Params, dataset: str, client: str, settings: Block) -> Plan | None:
    """Of the images that the run starts from, where it does."""
    if not settings.warm_start:
        return None
    moments, space = params.generator(dataset, "dp_moments"), public_space(params.profiles[dataset])
    return warm_start.plan(moments, *params.budget(client), settings.warm_start.share, space)


def _start(profile: Profile, plan: Plan | None) -> dict | None:
    """What the run starts from, beside its settings: for the ledger, which tells two releases apart by it."""
    if not plan:
        return None
    warps = profile.augmentation and profile.augmentation.model_dump()
    return {**plan.statement.details, "version": dp_moments.VERSION, "augmentation": warps}


def _account(
    params: Params, algorithm: str, client: str, settings: Block, plan: Plan | None
) -> Account:
    """
    Raises:
        UserError: the images that the run starts from leave nothing for its steps.
    """
    if not plan:
        return own.account(params, client, settings)
    epsilon, delta = params.budget(client)
    try:
        return noisy_run.family(settings).account(
            epsilon, warm_start.continuous(delta), settings, warm_start.steps(plan)
        )
    except ValueError:
        rule = f"small enough to leave something of epsilon {epsilon:g} by the run's own accountant"
        raise mistake(
            f"dp_baselines.{algorithm}.warm_start.share", settings.warm_start.share, rule
        ) from None


def _check_images(params: Params, dataset: str, algorithm: str, count: int) -> None:
    """
    Raises:
        UserError: the settings look at public images, and the fraction is too small for one.
    """
    settings = params.training(dataset, algorithm)
    field = looks_at_images(settings)
    if field and not count:
        rule = f"another, or {params.public_knob(dataset)} larger"
        raise mistake(f"dp_baselines.{algorithm}.{field}", getattr(settings, field), rule)


def _say(algorithm: str, accounts: dict[str, Account]) -> None:
    """
    Raises:
        UserError: no client's budget buys a step.
    """
    for client, its in accounts.items():
        steps = (
            f"{its.affordable} steps" if its.affordable else "no step, so that it takes no part,"
        )
        print(f"{client}: noise multiplier {its.first:.3f}, {steps} within epsilon {its.epsilon:g}")
    if not any(its.affordable for its in accounts.values()):
        most = max(its.epsilon for its in accounts.values())
        rule = f"enough for a step within some client's budget, the largest of which is epsilon {most:g}"
        asked = getattr(accounts[min(accounts)].settings, "noise_multiplier", None)
        raise mistake(f"dp_baselines.{algorithm}.noise_multiplier", asked, rule)


if __name__ == "__main__":
    main(run, "dataset", "algorithm", block="dp_baselines")
