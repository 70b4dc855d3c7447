"""train_baseline@DATASET-ALGORITHM: the same clients without PPPFL. Private.

local: private data alone, until it stops improving. random_init: PPPFL's fine-tuning from a fresh model. fedavg and
pooled: trained on the clients' synthetic sets (once per generator), then fine-tuned alike.
"""

import time
from collections.abc import Iterator
from functools import partial

from pipelines import paths, seeds
from pipelines.blocks.training import FineTune
from pipelines.config import Params
from pipelines.datasets import containers, exports, shards
from pipelines.datasets.secrets import season
from pipelines.federation import outcome, personalise, rounds
from pipelines.federation.algorithms import fedavg
from pipelines.federation.engines.inprocess import InProcess
from pipelines.files import new_folder
from pipelines.training import classify
from pipelines.training.tensors import State, device, state_of
from stages.cli import main

ON_PRIVATE_DATA = {"epsilon_max": 0.0, "guarantee": "nothing leaves a client"}


def run(params: Params, dataset: str, algorithm: str) -> None:
    clients = list(params.clients)
    own = shards.read_all(dataset, clients)
    everyone = containers.load(paths.prepared(dataset) / "test.npz")
    build = partial(classify.new, params.profiles[dataset], seeds.derive(params.seed, "init", dataset))
    with new_folder(paths.baseline(dataset, algorithm)) as folder:
        started = time.perf_counter()
        for method, models, privacy, settings in _methods(params, dataset, algorithm, build):
            cost = outcome.cost_of_rounds(models, clients=len(clients), seconds=time.perf_counter() - started)
            if algorithm == "pooled":  # images travel, not models
                cost |= {"bytes_down": None, "bytes_up": None}
            found = personalise.through_rounds(
                models,
                own,
                everyone,
                build=partial(build, device(params.device)),
                settings=settings,
                seed=seeds.derive(params.seed, "fine_tune", dataset),
            )
            summary, cost = {**found.summary, **privacy}, {**cost, "seconds_at_home": found.seconds}
            outcome.save_method(folder, method, summary, found.curve, found.personal, correct=found.correct, cost=cost)
            print(f"{dataset} {method}: {outcome.line(summary)}")
            started = time.perf_counter()
        season(folder, dataset, "all-clients")


def _methods(params: Params, dataset: str, algorithm: str, build) -> Iterator[tuple[str, list[State], dict, FineTune]]:
    """(method, global models, privacy, fine-tuning) for each method of the algorithm."""
    if algorithm in ("local", "random_init"):
        local = params.baselines.local.model_dump() if algorithm == "local" else {}
        yield algorithm, [state_of(build())], ON_PRIVATE_DATA, params.fine_tune.model_copy(update=local)
        return
    train = {"fedavg": _fedavg, "pooled": _pooled}[algorithm]
    for generator in params.synthesis.generators:
        data = exports.images(dataset, list(params.clients), generator)
        privacy = exports.privacy(dataset, list(params.clients), generator)
        seed = seeds.derive(params.seed, algorithm, dataset, generator)
        yield f"{algorithm}/{generator}", train(params, dataset, data, build, seed), privacy, params.fine_tune


def _fedavg(params: Params, dataset: str, data: dict, build, seed: int) -> list[State]:
    settings = params.baselines.fedavg
    handlers = {
        client: partial(
            fedavg.client_update,
            model=build(device(params.device)),
            data=images,
            settings=settings,
            seed=seeds.derive(seed, client),
        )
        for client, images in data.items()
    }
    start = fedavg.Server(state_of(build()))
    return rounds.run(start, fedavg.server_step, InProcess(handlers), rounds=settings.rounds, name="fedavg").models


def _pooled(params: Params, dataset: str, data: dict, build, seed: int) -> list[State]:
    everything = containers.concatenate([data[client] for client in sorted(data)])
    profile = params.profiles[dataset]
    return [state_of(classify.on_synthetic(everything, profile, params.baselines.pooled, seed, device(params.device)))]


if __name__ == "__main__":
    main(run, "dataset", "algorithm")
