"""new_clients@DATASET-GENERATOR: clients held out of the shared training, which then adapt with few labels. Private."""

from pipelines import methods, paths, scratch, seeds
from pipelines.config import Params
from pipelines.datasets import exports, labelled_images, shards
from pipelines.datasets.salting import add_salt_file
from pipelines.federation.core.task import of_clients
from pipelines.federation.home import new_clients
from pipelines.files import new_folder, write_json
from stages.cli import main

LEAST_BYTES = (
    1 << 18
)  # cells that are skipped, for want of records, must not show in the folder's size


def run(params: Params, dataset: str, generator: str) -> None:
    settings, clients = params.training(dataset, "new_clients"), list(params.clients)
    blocks = {algorithm: methods.block(algorithm) for algorithm in settings.algorithms}
    profile = params.profiles[dataset]
    sets = exports.images(dataset, clients, generator, profile)
    task = of_clients(params, dataset, sets, "new_clients", generator)
    with scratch.unfinished(f"new_clients-{dataset}-{generator}") as unfinished:
        found = new_clients.study(
            task,
            shards.read_all(dataset, settings.held_out, profile),
            labelled_images.load(paths.prepared(dataset) / "test.npz", profile),
            settings=settings,
            training={
                algorithm: params.training(dataset, block) for algorithm, block in blocks.items()
            },
            seed=seeds.derive(params.seed, "labelled", dataset),
            unfinished=unfinished,
        )
        _write(params, dataset, generator, found)
    for row in found.skipped:
        print(
            f"{dataset} {row['client']}: {row['records']} records, so not adapted with {row['labels']} labels"
        )
    print(
        f"{dataset}/{generator}: {len(found.cells)} tests of {len(settings.held_out)} new clients"
    )


def _write(params: Params, dataset: str, generator: str, found: new_clients.Study) -> None:
    settings, clients = params.training(dataset, "new_clients"), list(params.clients)
    privacy = {
        client: exports.privacy(dataset, [other for other in clients if other != client], generator)
        for client in settings.held_out
    }
    content = {
        **settings.model_dump(),
        "privacy": privacy,
        "skipped": found.skipped,
        "cells": found.cells,
    }
    with new_folder(paths.new_clients(dataset, generator)) as folder:
        write_json(folder / "results.json", content)
        write_json(folder / paths.COST, {"costs": found.costs})
        add_salt_file(folder, dataset, "all-clients", LEAST_BYTES)


if __name__ == "__main__":
    main(run, "dataset", "generator")
