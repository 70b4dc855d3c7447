"""Measures what a private head is worth to each client, beside PPPFL, on the draws of `personalisation`.

    python -m benchmarks.head_at_home --images ../shared/datasets      # half an hour; resumes
    python -m benchmarks.head_at_home --datasets digits --seeds 0
    python -m benchmarks.head_at_home --regimes 20x600 50x200 --datasets mnist fashion_mnist --roads head
    python -m benchmarks.head_at_home --datasets cifar10 --network encoder --roads head head_alone

Roads, each within the same epsilon of each client:

* `head` spends all of it on `dpsgd_head`. A client then trains the head by the recipe `replay`. There
  are no released images, so that a proximal term takes their place.
* `both` spends half of mu squared on images of `dp_moments`, and half on the head. The recipe then
  has released images.
* `distilled` releases the same as `both`. The images then have the released head's probabilities in
  place of their classes.
* `head_alone` joins nothing: a client trains the same kind of head on its records alone, by the schedule
  of the recipe. It is what `head` is compared with where the features are more than the federation.

Newcomers label 8, 64 or 300 of their records, and federated clients have all theirs. With 0 labels the
head is read as it is handed out. Both test sets are read as by `benchmarks.personalisation`, from whose
stored cells the columns of `pppfl` and of training alone come (`less_pppfl`, `less_local`: paired
differences of the mean, where those cells are there). Nothing is selected on test images.
"""

import argparse
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import torch
from scipy.special import softmax
from torch import nn
from tqdm import tqdm

from benchmarks import client_draws, personalisation, personalisation_cells, shared_models
from benchmarks.client_draws import NEWCOMERS, REGIMES, USUAL, ClientDraw
from benchmarks.common import (
    cells,
    cpu_seconds,
    digest,
    has,
    has_draw,
    keep,
    kept,
    show,
    with_other_draws,
    without,
)
from benchmarks.dp_head import on_network
from benchmarks.personalisation import ALL, NOTHING, labelled
from pipelines import config, seeds
from pipelines.config.data import Augmentation
from pipelines.config.training import Replay
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.federation.home import recipes
from pipelines.federation.home.personal import Personal, plain, prior_off
from pipelines.training import classifier, fixed_features, linear_head, replay
from pipelines.training.pool import Pool
from pipelines.training.tensors import State, with_state

NAME = "head_at_home"
DATASETS = ("digits", "mnist", "fashion_mnist")
# measured where it is asked for
BESIDE = ("cifar10",)
# {road: the share of mu squared that the head has}
ROADS = {"head": 1.0, "both": 0.5, "distilled": 0.5}
# what is measured if nothing else is asked for
USUAL_ROADS = ("head", "both")
ALONE = "head_alone"
LABELS = (NOTHING, "8", "64", "300", ALL)
NETWORK = "scatter"
HIDDEN = ("settings", "cells")
# columns that tell one row from another, and the digest of its settings
KEY = ("regime", "dataset", "network", "road", "settings", "labels")


class Taught(Pool):
    """Holds released images, whose labels are a model's probabilities.

    Args:
        data: the released images.
        augmentation: as of `Pool`.
        teacher: the model.
    """

    def __init__(self, data: Images, augmentation: Augmentation | None, teacher: nn.Module):
        super().__init__(data, augmentation)
        self.teacher = teacher.eval()

    def draw(self, count: int, stream: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Draws warped images as `Pool` does, and returns them with probabilities [count, K]."""
        images, _ = super().draw(count, stream)
        with torch.no_grad():
            return images, self.teacher(images).softmax(1)


def network_of(params: config.Params, dataset: str) -> str:
    """Returns the name of the network of a data set's head."""
    return params.training(dataset, "dpsgd_head").network


def built(clients: ClientDraw) -> nn.Module:
    """Returns a fresh head of a draw, on its fixed features."""
    network = network_of(clients.params, clients.dataset)
    profile = clients.params.profiles[clients.dataset]
    return classifier.new(profile.model_copy(update={"classifier": network}), 0)


def head_of(clients: ClientDraw, road: str) -> tuple[State, Pool | None]:
    """Trains the shared head, and returns it with the images that were released beside it.

    Args:
        clients: the draw.
        road: one of ROADS.
    """
    share = ROADS[road]
    state = shared_models.noisy(clients, "dpsgd_head", share)
    if share == 1:
        return state, None
    sets = []
    for client, epsilon in clients.regime.budgets.items():
        part = shared_models.share_of(epsilon, 1 - share)
        records = clients.shards[client].train
        sets.append(
            client_draws.released(
                clients.params,
                clients.dataset,
                records,
                clients.seed,
                part,
                clients.regime.images,
            )
        )
    warps = clients.params.profiles[clients.dataset].augmentation
    if road == "distilled":
        return state, Taught(concatenate(sets), warps, with_state(built(clients), state))
    return state, Pool(concatenate(sets), warps)


def tuned(
    clients: ClientDraw, state: State, pool: Pool | None, client: str, records: Images
) -> Personal:
    """Makes a client's own model of the head, by the shipped recipe for this network.

    Args:
        clients: the draw.
        state: the head as it is handed out.
        pool: released images, or None.
        client: the client's name.
        records: its labelled records.
    """
    model = with_state(built(clients), state)
    if not len(records):
        return plain(model, clients.params.profiles[clients.dataset].classes)
    personal, _ = recipes.replayed(
        model,
        records,
        recipe_of(clients),
        seed=seeds.derive(clients.seed, client),
        build=partial(built, clients),
        pool=pool,
    )
    return personal


def trained_alone(clients: ClientDraw, client: str, records: Images) -> Personal:
    """Makes the head that a client trains on its records alone, as `personalisation` trains networks.

    Args:
        clients: the draw.
        client: the client's name.
        records: its labelled records.
    """
    model = built(clients)
    replay.fit_alone(model, records, recipe_of(clients), seeds.derive(clients.seed, client))
    classes = clients.params.profiles[clients.dataset].classes
    return prior_off(model, replay.log_prior(records.labels, classes))


def recipe_of(clients: ClientDraw) -> Replay:
    """Returns the settings of the shipped recipe at home for this network."""
    network = network_of(clients.params, clients.dataset)
    return clients.params.training(clients.dataset, "fine_tune", network).replay


def predicted(personal: Personal, inputs: np.ndarray, *, elsewhere: bool) -> np.ndarray:
    """Returns the classes as `Personal.predict` does, from inputs that were computed once."""
    offset = personal.elsewhere if elsewhere else personal.at_home
    scores = softmax(inputs @ personal.model[2].weight.detach().numpy().T + offset, axis=1)
    if personal.alone and not elsewhere:
        scores += softmax(inputs @ personal.alone[2].weight.detach().numpy().T, axis=1)
    return scores.argmax(1)


def scored(clients: ClientDraw, personal: Personal, client: str) -> dict[str, float]:
    """Returns the accuracy on the client's own test part, and on the global one.

    Args:
        clients: the draw.
        personal: the client's model.
        client: its name.
    """
    profile = clients.params.profiles[clients.dataset]
    fixed = fixed_features.of(profile, network_of(clients.params, clients.dataset))
    found = {}
    for name, data in (("own", clients.own_test(client)), ("global", clients.everyone)):
        classes = predicted(personal, linear_head.inputs(data, fixed), elsewhere=name == "global")
        found[name] = float(np.mean(classes == data.labels))
    return found


def measured(clients: ClientDraw, road: str) -> Iterator[dict]:
    """Yields a cell for each client and number of labels."""
    began = cpu_seconds()
    make = partial(trained_alone, clients)
    if road != ALONE:
        make = partial(tuned, clients, *head_of(clients, road))
    start_seconds = cpu_seconds() - began
    keys = []
    for labels in LABELS[1:] if road == ALONE else LABELS:
        scored_clients = clients.regime.federated[: clients.regime.scored]
        who = scored_clients if labels == ALL else NEWCOMERS
        keys += [(labels, client) for client in who]
    for labels, client in tqdm(keys, desc=f"{clients.dataset}, {road}", disable=None):
        records = labelled(clients, client, labels)
        began = cpu_seconds()
        personal = make(client, records)
        seconds = cpu_seconds() - began
        yield {
            "labels": labels,
            "client": client,
            "seed": clients.seed,
            **scored(clients, personal, client),
            "start_cpu_seconds": start_seconds,
            "cpu_seconds": seconds,
        }


def row(key: dict, found: list[dict], others: list[dict]) -> dict:
    """Returns the table's line of a road and a number of labels.

    Args:
        key: the line's regime, data set, network, road and number of labels.
        found: the cells of this line.
        others: the stored cells of `personalisation`.
    """
    line = {
        **key,
        "own": float(np.mean([cell["own"] for cell in found])),
        "global": float(np.mean([cell["global"] for cell in found])),
        "seeds": len({cell["seed"] for cell in found}),
    }
    for name, start, recipe in (("pppfl", "pppfl", "replay"), ("local", "random", "alone")):
        way = {"regime": key["regime"], "dataset": key["dataset"]}
        way |= {"start": start, "recipe": recipe}
        pairs = []
        for cell in found:
            same = {**way, **{field: cell[field] for field in ("seed", "client", "labels")}}
            pairs += [(cell, other) for other in others if has(other, same)]
        for figure in ("own", "global"):
            differences = [cell[figure] - other[figure] for cell, other in pairs]
            line[f"{figure}_less_{name}"] = float(np.mean(differences)) if pairs else None
    return {**line, "cells": found}


def add(way: dict, found: list[dict], others: list[dict]) -> None:
    """Stores the cells of one draw in the rows of their regime, data set, network and road."""
    rows = kept(NAME)
    for labels in LABELS:
        key = {**way, "labels": labels}
        new_cells = [cell for cell in found if cell["labels"] == labels]
        if not new_cells:
            continue
        line = row(key, with_other_draws(rows, key, new_cells), others)
        same = {name: value for name, value in key.items() if name != "settings"}
        rows = [*without(rows, same), line]
    keep(NAME, rows)


def paired_anew(rows: list[dict], others: list[dict]) -> list[dict]:
    """Returns the rows with their differences to the cells that `personalisation` has stored since.

    Args:
        rows: the stored rows.
        others: the stored cells of `personalisation`.
    """
    return [row({name: line[name] for name in KEY}, line["cells"], others) for line in rows]


def conditions(params: config.Params, dataset: str, regime: str) -> str:
    """Returns a digest of all settings that a cell follows from.

    Args:
        params: The parameters of params.yaml.
        dataset: Name of the data set.
        regime: what clients there are.
    """
    network = network_of(params, dataset)
    blocks = [
        client_draws.conditions(params, dataset, REGIMES[regime]),
        params.training(dataset, "dpsgd_head").model_dump(),
        params.training(dataset, "fine_tune", network).model_dump(),
    ]
    if network == "encoder":
        blocks.append(params.profiles[dataset].encoder.model_dump())
    return digest(blocks)


def main() -> None:
    """Measures the draws that are not stored yet, and prints all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, default=Path("../shared/datasets"))
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS + BESIDE)
    parser.add_argument("--network", default=NETWORK, choices=["scatter", "encoder"])
    parser.add_argument("--roads", nargs="+", default=list(USUAL_ROADS), choices=[*ROADS, ALONE])
    parser.add_argument("--regimes", nargs="+", default=[USUAL], choices=REGIMES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    params = config.load()
    for dataset in arguments.datasets:
        params = on_network(params, dataset, arguments.network)
    others = personalisation_cells.stored(personalisation.NAME)
    for seed, dataset, train, test in cells(
        params, arguments.datasets, arguments.seeds, arguments.images
    ):
        for regime, road in product(arguments.regimes, arguments.roads):
            way = {"regime": regime, "dataset": dataset, "network": arguments.network}
            way["road"] = road
            way["settings"] = conditions(params, dataset, regime)
            if has_draw(NAME, way, seed):
                continue
            clients = client_draws.draw(params, dataset, seed, train, test, REGIMES[regime])
            add(way, list(measured(clients, road)), others)
    keep(NAME, paired_anew(kept(NAME), others))
    show(kept(NAME), hidden=HIDDEN)


if __name__ == "__main__":
    main()
