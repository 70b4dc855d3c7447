"""Measures whether small hospitals gain: chest X-rays and breast ultrasound, by road and epsilon.

    python -m benchmarks.medical_clients --images raw       # pneumonia.npz and breast.npz lie there

Eight clients get a Dirichlet part (0.5) of PneumoniaMNIST or BreastMNIST each: some 650 or 80
records on average, all three parts together. Five federate, each within its epsilon. With all its
labels a client is scored on its own test and validation part, for no recipe reads them, and on the
official test images.

* `local` trains a network alone, and `head_alone` the head, each by its recipe's schedule and steps.
* `pppfl` hands out PPPFL's model and the released images of `dp_moments`, for the recipe `replay`.
* `head` hands out the noisy head of `dpsgd_head`, for the same recipe with a proximal term.
* `head_shared` is that head as it is handed out.

Figures are accuracy, balanced accuracy (the mean recall of both classes) and the area under the ROC
curve. Own images of a single class have no area, and do not count there. Nothing is selected on test
images. A cell says on how many `records` its client trains, and on how many `own_images` it is scored
at home. Cells that are stored are not measured again.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from benchmarks import client_draws, head_at_home, personalisation, shared_models
from benchmarks.client_draws import ClientDraw, Regime
from benchmarks.common import (
    digest,
    has_draw,
    keep,
    kept,
    read,
    show,
    with_other_draws,
    without,
)
from benchmarks.personalisation import ALL
from benchmarks.personalisation_cells import ALONE_RECIPE
from pipelines import config
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.federation.home.personal import Personal

NAME = "medical_clients"
DATASETS = ("pneumonia", "breast")
EPSILONS = (1.0, 3.0, 10.0)
# training alone costs no budget
ALONE = ("local", head_at_home.ALONE)
ROADS = (*ALONE, "pppfl", "head", "head_shared")
FIGURES = ("accuracy", "balanced_accuracy", "auc")
HIDDEN = ("settings", "cells")


def figures(personal: Personal, data: Images, *, elsewhere: bool) -> dict[str, float | None]:
    """Returns the figures of a model on images; None where images of one class have no area.

    Args:
        personal: the model.
        data: the images.
        elsewhere: whether they are everybody's.
    """
    probabilities = personal.probabilities(data, elsewhere=elsewhere)
    predicted = probabilities.argmax(1)
    present = np.unique(data.labels)
    area = None
    if len(present) == 2:
        area = float(roc_auc_score(data.labels, probabilities[:, 1]))
    recalls = [np.mean(predicted[data.labels == label] == label) for label in present]
    return {
        "accuracy": float(np.mean(predicted == data.labels)),
        "balanced_accuracy": float(np.mean(recalls)),
        "auc": area,
    }


def models(clients: ClientDraw, road: str) -> Iterator[tuple[str, Personal]]:
    """Yields each federated client's own model.

    Args:
        clients: the draw.
        road: one of ROADS.
    """
    pool = None
    state = None
    if road in ("head", "head_shared"):
        state, pool = head_at_home.head_of(clients, "head")
    elif road == "pppfl":
        state = shared_models.trained(clients, "pppfl")
        pool = clients.pool
    elif road == "local":
        state = shared_models.trained(clients, personalisation.ALONE)
    for client in clients.regime.federated:
        records = clients.shards[client].train
        if road == head_at_home.ALONE:
            yield client, head_at_home.trained_alone(clients, client, records)
        elif road == "head_shared":
            yield client, head_at_home.tuned(clients, state, pool, client, records[:0])
        elif road == "head":
            yield client, head_at_home.tuned(clients, state, pool, client, records)
        else:
            recipe = ALONE_RECIPE if road == "local" else "replay"
            key = {"client": client, "labels": ALL, "recipe": recipe}
            yield client, personalisation.tuned(clients, state, key, records, pool, {})


def measured(clients: ClientDraw, road: str) -> list[dict]:
    """Returns a cell for each federated client."""
    found = []
    for client, personal in models(clients, road):
        shard = clients.shards[client]
        own = concatenate([shard.test, shard.validation])
        found.append(
            {
                "seed": clients.seed,
                "client": client,
                "records": len(shard.train),
                "own_images": len(own),
                "own": figures(personal, own, elsewhere=False),
                "global": figures(personal, clients.everyone, elsewhere=True),
            }
        )
    return found


def row(key: dict, found: list[dict]) -> dict:
    """Returns the table's line of some cells, with means over clients and seeds."""
    line = {**key, "seeds": len({cell["seed"] for cell in found})}
    for where in ("own", "global"):
        for figure in FIGURES:
            values = [cell[where][figure] for cell in found if cell[where][figure] is not None]
            line[f"{where}_{figure}"] = float(np.mean(values))
    return {**line, "cells": found}


def add(key: dict, found: list[dict]) -> None:
    """Stores the cells of a draw beside those of other seeds."""
    rows = kept(NAME)
    same = {name: value for name, value in key.items() if name != "settings"}
    line = row(key, with_other_draws(rows, key, found))
    keep(NAME, [*without(rows, same), line])


def conditions(params: config.Params, dataset: str, regime: Regime) -> str:
    """Returns a digest of all settings that a cell follows from.

    Args:
        params: The parameters of params.yaml.
        dataset: Name of the data set.
        regime: what clients there are.
    """
    network = head_at_home.network_of(params, dataset)
    blocks = [
        client_draws.conditions(params, dataset, regime),
        params.training(dataset, "dpsgd_head").model_dump(),
        params.training(dataset, "fine_tune", network).model_dump(),
    ]
    for name in ("meta", "fine_tune"):
        blocks.append(params.training(dataset, name).model_dump())
    return digest(blocks)


def main() -> None:
    """Measures what is missing, and prints all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, default=Path("raw"))
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--roads", nargs="+", default=list(ROADS), choices=ROADS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    params = config.load()
    usual = Regime(records=None, least=20)
    for seed in arguments.seeds:
        for dataset in arguments.datasets:
            train, test = read(params, dataset, arguments.images)
            for epsilon in arguments.epsilons:
                regime = replace(usual, epsilons=(epsilon,))
                for road in arguments.roads:
                    key = {"dataset": dataset, "road": road, "epsilon": epsilon}
                    if road in ALONE:
                        key["epsilon"] = None
                    base = usual if road in ALONE else regime
                    key["settings"] = conditions(params, dataset, base)
                    if has_draw(NAME, key, seed):
                        continue
                    clients = client_draws.draw(params, dataset, seed, train, test, regime)
                    add(key, measured(clients, road))
    show(kept(NAME), hidden=HIDDEN)


if __name__ == "__main__":
    main()
