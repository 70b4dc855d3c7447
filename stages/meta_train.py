"""meta_train@DATASET-GENERATOR: PPPFL's initial model, from the clients' synthetic sets and nothing else.

What it cost is kept apart, at home: a clock says something else each time."""

import time
from functools import partial

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.datasets import exports
from pipelines.datasets.secrets import season
from pipelines.federation import outcome, rounds
from pipelines.federation.algorithms import pppfl
from pipelines.federation.engines.inprocess import InProcess
from pipelines.files import new_folder, write_csv, write_json
from pipelines.training import classify
from pipelines.training.tensors import device, state_of
from stages.cli import main


def run(params: Params, dataset: str, generator: str) -> None:
    settings, profile = params.meta, params.profiles[dataset]
    seed = seeds.derive(params.seed, "meta_train", dataset, generator)
    data = exports.images(dataset, list(params.clients), generator)
    build = partial(classify.new, profile, seeds.derive(params.seed, "init", dataset), device(params.device))
    handlers = {
        client: _handler(images, build(), settings, seeds.derive(seed, client)) for client, images in data.items()
    }
    epsilons = {client: params.clients[client].epsilon for client in data}
    sizes = {client: len(images) for client, images in data.items()}
    weights = pppfl.client_weights(settings, epsilons, sizes)
    start = pppfl.Server(state_of(build()), settings, weights)
    started = time.perf_counter()
    history = rounds.run(start, pppfl.server_step, InProcess(handlers), rounds=settings.rounds, name="meta_train")
    cost = outcome.cost_of_rounds(history.models, clients=len(data), seconds=time.perf_counter() - started)
    curves = [
        {**row, "outer_learning_rate": pppfl.outer_learning_rate(settings, row["round"])} for row in history.curves
    ]
    of = dataset, list(params.clients), generator
    with new_folder(paths.initial(dataset, generator)) as folder:
        outcome.save_models(folder / "rounds.safetensors", history.models)
        write_csv(folder / "rounds.csv", curves)
        write_json(folder / "privacy.json", {**exports.privacy(*of), "releases": exports.releases(*of)})
    with new_folder(paths.cost(dataset, generator)) as folder:
        write_json(folder / paths.COST, cost)
        season(folder, dataset, "all-clients")
    last = curves[-1]
    print(f"{dataset}/{generator}: query loss {last['query_loss']:.3f}, accuracy {last['query_accuracy']:.3f}")


def _handler(images, model, settings, seed: int):
    support, query = pppfl.support_and_query(images, settings.query_fraction, seed)
    return partial(pppfl.client_update, model=model, support=support, query=query, settings=settings, seed=seed)


if __name__ == "__main__":
    main(run, "dataset", "generator")
