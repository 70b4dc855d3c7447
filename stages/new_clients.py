"""new_clients@DATASET-GENERATOR: clients left out of the shared training adapt with few labels.

Its output is private.
"""

from pipelines import methods, paths, scratch, seeds
from pipelines.config import Params
from pipelines.datasets import exports, labelled_images, shards
from pipelines.datasets.salting import add_salt_file
from pipelines.federation.core.task import of_clients
from pipelines.federation.home import new_clients
from pipelines.files import new_folder, write_json
from stages.cli import main

# cells that are skipped, for want of records, must not show in the folder's size
LEAST_BYTES = 1 << 18


def run(params: Params, dataset: str, generator: str) -> None:
    """Adapts every new client with every algorithm and writes the results.

    Args:
        params: The parameters.
        dataset: The data set's name.
        generator: The generator's name.
    """
    settings = params.training(dataset, "new_clients")
    clients = list(params.clients)
    training = {}
    for algorithm in settings.algorithms:
        training[algorithm] = params.training(dataset, methods.block(algorithm))
    profile = params.profiles[dataset]
    sets = exports.images(dataset, clients, generator, profile)
    task = of_clients(params, dataset, sets, "new_clients", generator)
    with scratch.unfinished(f"new_clients-{dataset}-{generator}") as unfinished:
        study = new_clients.study(
            task,
            shards.read_all(dataset, settings.held_out, profile),
            labelled_images.load(paths.prepared(dataset) / "test.npz", profile),
            settings=settings,
            training=training,
            seed=seeds.derive(params.seed, "labelled", dataset),
            replay=params.training(dataset, "fine_tune").replay,
            per_class=params.training(dataset, "meta").pool_per_class,
            unfinished=unfinished,
        )
        _write(params, dataset, generator, study)
    for row in study.skipped:
        print(
            f"{dataset} {row['client']}: {row['records']} records, so not adapted with "
            f"{row['labels']} labels"
        )
    print(
        f"{dataset}/{generator}: {len(study.cells)} tests of {len(settings.held_out)} new clients"
    )


def _write(params: Params, dataset: str, generator: str, study: new_clients.Study) -> None:
    settings = params.training(dataset, "new_clients")
    privacy = {}
    for client in settings.held_out:
        others = [name for name in params.clients if name != client]
        privacy[client] = exports.privacy(dataset, others, generator)
    content = {
        **settings.model_dump(),
        "privacy": privacy,
        "skipped": study.skipped,
        "cells": study.cells,
    }
    with new_folder(paths.new_clients(dataset, generator)) as folder:
        write_json(folder / "results.json", content)
        write_json(folder / paths.COST, {"costs": study.costs})
        add_salt_file(folder, dataset, "all-clients", LEAST_BYTES)


if __name__ == "__main__":
    main(run, "dataset", "generator")
