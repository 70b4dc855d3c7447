"""new_clients@DATASET-GENERATOR: clients held out of the shared training, which then adapt with few labels. Private."""

from functools import partial

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.datasets import containers, exports, shards
from pipelines.datasets.secrets import season
from pipelines.federation import methods, new_clients
from pipelines.federation.task import Task
from pipelines.files import new_folder, write_json
from pipelines.training import classify
from pipelines.training.tensors import device
from stages.cli import main


def run(params: Params, dataset: str, generator: str) -> None:
    settings, profile, clients = params.training(dataset, "new_clients"), params.profiles[dataset], list(params.clients)
    blocks = {algorithm: methods.block(algorithm) for algorithm in settings.algorithms}
    task = Task(
        data=exports.images(dataset, clients, generator),
        build=partial(classify.new, profile, seeds.derive(params.seed, "init", dataset), device(params.device)),
        augmentation=profile.augmentation,
        epsilons={client: params.clients[client].epsilon for client in clients},
        seed=seeds.derive(params.seed, "new_clients", dataset, generator),
    )
    found = new_clients.study(
        task,
        shards.read_all(dataset, settings.held_out),
        containers.load(paths.prepared(dataset) / "test.npz"),
        settings=settings,
        training={algorithm: params.training(dataset, block) for algorithm, block in blocks.items()},
        seed=seeds.derive(params.seed, "labelled", dataset),
    )
    privacy = {
        client: exports.privacy(dataset, [other for other in clients if other != client], generator)
        for client in settings.held_out
    }
    content = {**settings.model_dump(), "privacy": privacy, "skipped": found.skipped, "cells": found.cells}
    with new_folder(paths.new_clients(dataset, generator)) as folder:
        write_json(folder / "results.json", content)
        write_json(folder / paths.COST, {"costs": found.costs})
        season(folder, dataset, "all-clients")
    for row in found.skipped:
        print(f"{dataset} {row['client']}: {row['records']} records, so not adapted with {row['labels']} labels")
    print(f"{dataset}/{generator}: {len(found.cells)} tests of {len(settings.held_out)} new clients")


if __name__ == "__main__":
    main(run, "dataset", "generator")
