"""train_dp_baseline@DATASET-ALGORITHM: the clients' budgets spent on noisy gradients instead of images. Private."""

from functools import partial

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.datasets import containers, shards
from pipelines.federation import outcome, personalise, rounds
from pipelines.federation.dp import dpsgd
from pipelines.federation.engines.inprocess import InProcess
from pipelines.files import new_folder
from pipelines.privacy import noise
from pipelines.training import classify
from pipelines.training.tensors import device, state_of
from stages.cli import main


def run(params: Params, dataset: str, algorithm: str) -> None:
    settings = params.dp_baselines.dpsgd
    own = shards.read_all(dataset, list(params.clients))
    build = partial(
        classify.new, params.profiles[dataset], seeds.derive(params.seed, "init", dataset), device(params.device)
    )
    accounts = {client: dpsgd.Budgeted(*params.budget(client), settings) for client in own}
    sources = {client: _noise(params, dataset, algorithm, client) for client in own}
    for client, account in accounts.items():
        print(f"{client}: noise multiplier {account.noise_multiplier:.3f} for epsilon {account.epsilon:g}")
    handlers = {
        client: partial(
            dpsgd.client_update,
            model=build(),
            data=shard.train,
            account=accounts[client],
            generator=sources[client].torch_generator("cpu"),
        )
        for client, shard in own.items()
    }
    start = dpsgd.Server(state_of(build()))
    history = rounds.run(start, dpsgd.server_step, InProcess(handlers), rounds=settings.rounds, name=algorithm)
    statements = {client: accounts[client].statement(sources[client]).as_dict() for client in own}
    summary, curve, personal = personalise.through_rounds(
        history.models,
        own,
        containers.load(paths.prepared(dataset) / "test.npz"),
        build=build,
        settings=params.fine_tune,
        seed=seeds.derive(params.seed, "fine_tune", dataset),
    )
    formal = all(statement["guarantee"] == "formal" for statement in statements.values())
    privacy = {
        "epsilon_max": max(float(statement["epsilon"]) for statement in statements.values()),
        "guarantee": "formal" if formal else "none",
        "statements": statements,
    }
    with new_folder(paths.dp_baseline(dataset, algorithm)) as folder:
        outcome.save_method(folder, algorithm, {**summary, **privacy}, curve, personal)
    print(f"{dataset} {algorithm}: {outcome.line(summary)}")


def _noise(params: Params, dataset: str, algorithm: str, client: str) -> noise.Noise:
    test_seed = seeds.derive(params.seed, "test noise", dataset, algorithm, client)
    return noise.source(params.privacy.noise, test_seed)


if __name__ == "__main__":
    main(run, "dataset", "algorithm")
