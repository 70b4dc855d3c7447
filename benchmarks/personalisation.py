"""Measures what a federation is worth to each client: by model handed out, recipe and labels.

    python -m benchmarks.personalisation --images ../shared/datasets            # hours; resumes
    python -m benchmarks.personalisation --datasets digits --seeds 0 --labels 8 64
    python -m benchmarks.personalisation --development --datasets digits        # no test image
    python -m benchmarks.personalisation --regimes 20x600 50x200 --starts pppfl --recipes replay
    python -m benchmarks.personalisation --datasets cifar10 --resnet --bfloat16     # quick on a GPU

Regime `5` has five federated clients at epsilon 10, `mixed` the same at 1, 3, 5, 8 and 10, `20x600`
twenty with 600 records on average, and `50x200` fifty with 200. With `-at-1` their epsilon is 1, and
with `-at-1-joint` they make one release together (`client_draws.REGIMES`).

Newcomers label 0 to 250 of their records; federated clients have all theirs (`client_draws`). With 0
labels the model is read as it is handed out. Training alone, the start `random` with the recipe
`alone`, is measured in every call, for all others are compared with it. It takes the same steps as
`replay`, by the same schedule.

Each model is read twice. On a client's own test part its class shares are added to the logits; on
the global test set they are not. Weights that were trained without the shares in the loss are read as
they are on own images, and with the shares taken off on the global test set. The last iterate of
newcomers is scored, and nothing is selected on test images. With `--development` the global images
are held out of the training images, and no test image is read. Cells are stored when they are done. A
cell that is stored under the same settings is not measured again.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from benchmarks import client_draws, shared_models
from benchmarks.client_draws import NEWCOMERS, REGIMES, USUAL, ClientDraw
from benchmarks.common import cells, cpu_seconds, digest, has, show, with_network
from benchmarks.personalisation_cells import ALONE_RECIPE, add, retain, stored, summary
from benchmarks.shared_models import NOISY
from pipelines import config, methods, seeds
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard
from pipelines.federation.home import new_clients, recipes
from pipelines.federation.home.personal import Personal, balanced, plain, prior_off
from pipelines.training import replay
from pipelines.training.pool import Pool
from pipelines.training.tensors import State, device, with_state

NAME = "personalisation"
DATASETS = ("digits", "mnist", "fashion_mnist")
# measured where it is asked for
BESIDE = ("cifar10",)
ALL = "all"
DEVELOPMENT_SEED = 100
ALONE = "random"
# The control of a mean: two models that were trained alone.
PAIR = "pair"
STARTS = ("pppfl", "pooled", "fedavg", "pppfl_paper", "dpsgd_warm")
RECIPES = ("replay", "prior", "plain")
NOTHING = "0"
# What training alone takes of a schedule.
OF_ALONE = {"steps", "learning_rate", "cosine"}
LABELS = (NOTHING, "1", "8", "16", "32", "64", "250", ALL)


def tuned(
    clients: ClientDraw,
    initial: State,
    key: dict,
    records: Images,
    pool: Pool | None,
    beside: dict[tuple, nn.Module],
) -> Personal:
    """Makes a client's own model of the one that it is handed, by the shipped settings.

    Args:
        clients: the draw.
        initial: the weights handed out.
        key: names the cell: its start, client, labels and recipe. `prior` trains nothing, `plain`
            trains on the records alone, `replay` on both, `alone` as `replay` and on the records alone,
            and `pair` two of these, of which the mean counts on own images.
        records: the client's labelled records.
        pool: all released images, or None.
        beside: {(client, labels): the model that the client trains alone}, filled here: the recipe's
            mean takes the same one with every start.
    """
    params = clients.params
    model = with_state(clients.build(), initial)
    prior = replay.log_prior(records.labels, params.profiles[clients.dataset].classes)
    if key["labels"] == NOTHING:
        return plain(model, len(prior))
    if key["recipe"] == "prior":
        return balanced(model, prior)
    shard = clients.shards[key["client"]]
    labelled_shard = Shard(records, shard.validation, shard.test)
    if key["recipe"] == "plain" and key["labels"] != ALL:
        new_clients.adapt(model, records, params.training(clients.dataset, "new_clients"))
        return prior_off(model, prior)
    settings = params.training(clients.dataset, "fine_tune")
    recipe = ALONE_RECIPE if key["recipe"] == PAIR else key["recipe"]
    chosen = settings.model_copy(update={"recipe": recipe})
    seed = seeds.derive(clients.seed, key["client"])

    personal, _ = recipes.fine_tuned(
        model,
        labelled_shard,
        chosen,
        seed=seed,
        build=clients.build,
        pool=pool,
        alone=beside.get((key["client"], key["labels"])) if recipe == "replay" else None,
    )
    if personal.alone:
        beside[key["client"], key["labels"]] = personal.alone
    if recipe == "replay":
        return personal
    single = prior_off(model, prior)
    if key["recipe"] != PAIR:
        return single
    second = clients.build()
    replay.fit_alone(second, records, settings.replay, seeds.derive(seed, "alone"))
    beside[key["client"], key["labels"]] = second
    return replace(single, alone=second)


def scored(clients: ClientDraw, personal: Personal, client: str) -> dict[str, float]:
    """Returns the accuracy on the client's own test part, and by both read-outs on the global one.

    Args:
        clients: the draw.
        personal: the client's model.
        client: its name.
    """
    own_test = clients.own_test(client)
    everyone = clients.everyone
    return {
        "own": _accuracy(personal.predict(own_test), own_test),
        "global": _accuracy(personal.predict(everyone, elsewhere=True), everyone),
        "global_at_home": _accuracy(personal.predict(everyone), everyone),
    }


def _accuracy(predicted: np.ndarray, data: Images) -> float:
    return float(np.mean(predicted == data.labels))


def conditions(params: config.Params, cell: dict) -> str:
    """Returns a digest of all settings that a cell follows from, and of no others.

    Args:
        params: The parameters of params.yaml.
        cell: Its key, and the number of its records.
    """
    dataset = cell["dataset"]
    blocks = [client_draws.conditions(params, dataset, REGIMES[cell["regime"]])]
    if cell["start"] != ALONE:
        blocks.append(params.training(dataset, methods.block(cell["start"])).model_dump())
    if cell["recipe"] == "plain" and cell["labels"] != ALL:
        # the benchmark has newcomers of its own
        blocks.append(params.training(dataset, "new_clients").model_dump(exclude={"held_out"}))
    home = params.training(dataset, "fine_tune")
    if cell["recipe"] == "plain":
        blocks.append(home.model_dump(exclude={"replay"}))
    elif cell["recipe"] != "prior":
        schedule = replay.schedule_of(home.replay, cell["records"])
        alone = cell["recipe"] in (ALONE_RECIPE, PAIR)
        blocks.append(home.replay.model_dump(exclude={"schedules"}))
        blocks.append(schedule.model_dump(include=OF_ALONE if alone else None))
    profile = params.profiles[dataset].model_dump()
    blocks += [profile[name] for name in ("classifier", "shape", "classes", "augmentation")]
    return digest(blocks)


def is_current(params: config.Params, cell: dict) -> bool:
    """Returns whether a stored cell was measured under these parameters."""
    return cell["settings"] == conditions(params, cell)


def wanted(
    dataset: str,
    seed: int,
    starts: list[str],
    recipes: list[str],
    labels: list[str],
    regime: str = USUAL,
) -> list[dict]:
    """Returns the keys of all cells of one draw, those of training alone first.

    Args:
        dataset: its name.
        seed: of the draw.
        starts: the models that clients are handed.
        recipes: what clients do with them.
        labels: numbers of labels of newcomers, and `all` for federated clients.
        regime: what clients there are.
    """
    draw = {"regime": regime, "dataset": dataset, "seed": seed}
    federated = REGIMES[regime].federated[: REGIMES[regime].scored]
    ways = [(ALONE, ALONE_RECIPE), (ALONE, PAIR)]
    for start in starts:
        ways += [(start, recipe) for recipe in recipes]
    keys = []
    for start, recipe in ways:
        for count in labels:
            # no recipe has begun: one name for all of them, and an untrained model guesses
            if count == NOTHING and (start == ALONE or recipe != RECIPES[0]):
                continue
            # the recipe takes a mean where there are thousands of labels
            if recipe == PAIR and (count != ALL or regime != USUAL):
                continue
            for client in federated if count == ALL else NEWCOMERS:
                way = {"start": start, "recipe": recipe, "labels": count}
                keys.append({**draw, **way, "client": client})
    return keys


def measured(clients: ClientDraw, keys: list[dict], *, half: bool = False) -> Iterator[dict]:
    """Yields the cell of each key. The model of a start is trained once.

    Args:
        clients: the draw.
        keys: of the cells.
        half: products of training take bfloat16 factors. Weights and scores are in float32.
    """
    pool = clients.pool
    products = partial(bfloat16_products, clients.params.device, half)
    models = {}
    beside = {}
    for key in tqdm(keys, desc=f"{clients.dataset}, seed {clients.seed}", disable=None):
        start = key["start"]
        if start not in models:
            began = cpu_seconds()
            with products():
                weights = shared_models.trained(clients, start)
            models[start] = (weights, cpu_seconds() - began)
        initial, start_seconds = models[start]
        records = labelled(clients, key["client"], key["labels"])
        began = cpu_seconds()
        released = None if start in NOISY else pool
        with products():
            personal = tuned(clients, initial, key, records, released, beside)
        seconds = cpu_seconds() - began
        yield {
            **key,
            **scored(clients, personal, key["client"]),
            "records": len(records),
            "start_cpu_seconds": start_seconds,
            "cpu_seconds": seconds,
            "bfloat16": half,
        }


def bfloat16_products(name: str, half: bool) -> torch.autocast:
    """Returns a context in which products take bfloat16 factors.

    The factors are made anew in each pass: torch would keep those of the weights before the first step.

    Args:
        name: of the device, as in the parameters.
        half: whether they do; else nothing changes.
    """
    kind = device(name).type
    return torch.autocast(kind, torch.bfloat16, enabled=half, cache_enabled=False)


def labelled(clients: ClientDraw, client: str, count: str) -> Images:
    """Returns the records that a client has labels of. Fewer labels are among more.

    Args:
        clients: the draw.
        client: its name.
        count: how many, or `all`.
    """
    records = clients.shards[client].train
    if count == ALL:
        return records
    if count == NOTHING:
        return records[:0]
    return new_clients.labelled(records, int(count), seeds.derive(clients.seed, "labelled", client))


def main() -> None:
    """Measures what is missing, prints and stores the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, default=Path("../shared/datasets"))
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS + BESIDE)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--starts", nargs="+", default=list(STARTS), choices=STARTS)
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), choices=RECIPES)
    parser.add_argument("--labels", nargs="+", default=list(LABELS), choices=LABELS)
    parser.add_argument("--regimes", nargs="+", default=[USUAL], choices=REGIMES)
    parser.add_argument("--development", action="store_true")
    parser.add_argument("--resnet", action="store_true", help="CIFAR-10 by ResNet-18")
    parser.add_argument("--bfloat16", action="store_true", help="train with bfloat16 products")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    params = config.load()
    if arguments.resnet:
        params = with_network(params, "cifar10", "resnet")
    parts = [NAME, "resnet" * arguments.resnet, "development" * arguments.development]
    name = "_".join(filter(None, parts))
    chosen_seeds = arguments.seeds
    if arguments.development:
        chosen_seeds = [DEVELOPMENT_SEED + seed for seed in arguments.seeds]
    current = partial(is_current, params)
    for regime in arguments.regimes:
        done = list(filter(current, stored(name)))
        draws = cells(params, arguments.datasets, chosen_seeds, arguments.images)
        for seed, dataset, train, test in draws:
            keys = wanted(
                dataset, seed, arguments.starts, arguments.recipes, arguments.labels, regime
            )
            missing = [key for key in keys if not any(has(cell, key) for cell in done)]
            if not missing:
                continue
            retain(name, current)
            held_out = None if arguments.development else test
            clients = client_draws.draw(params, dataset, seed, train, held_out, REGIMES[regime])
            for cell in measured(clients, missing, half=arguments.bfloat16):
                add(name, {**cell, "settings": conditions(params, cell)})
    show(summary(list(filter(current, stored(name)))))


if __name__ == "__main__":
    main()
