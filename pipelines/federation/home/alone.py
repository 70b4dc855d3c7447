"""Trains each client's model on its records alone, without any federation. All of it is private.

It is `local`, which federating is compared with. The recipe of clients with many labels needs it,
too: on a client's own images the mean of both models' probabilities counts (`mean_with_local`). It
is trained once for all methods.
"""

import time
from pathlib import Path

from torch import nn
from tqdm import tqdm

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.config.training import Replay
from pipelines.datasets.shards import Shard
from pipelines.federation.home.recipes import Build
from pipelines.files import read_arrays, read_json, require, write_arrays, write_json
from pipelines.training import replay
from pipelines.training.tensors import state_of, with_state


def trained(
    build: Build, shards: dict[str, Shard], settings: Replay, seed: int
) -> tuple[dict[str, nn.Module], float]:
    """Trains every client's model by the schedule of its number of labels.

    Args:
        build: makes a fresh network.
        shards: {client: its private records}.
        settings: the schedules.
        seed: of the batches; each client's own is derived from it.

    Returns:
        {client: its model}, and the seconds of all of them, one after the other.
    """
    models = {}
    started = time.perf_counter()
    for client in tqdm(sorted(shards), desc="each client alone", disable=None, mininterval=1):
        model = build()
        records = shards[client].train
        replay.fit_alone(model, records, settings, seeds.derive(seed, client))
        models[client] = model
    return models, time.perf_counter() - started


def write(folder: Path, models: dict[str, nn.Module], seconds: float) -> None:
    """Writes the models, and the seconds that they took.

    Args:
        folder: an existing one.
        models: {client: its model}.
        seconds: of all of them.
    """
    for client, model in models.items():
        write_arrays(folder / f"{client}.safetensors", state_of(model))
    write_json(folder / paths.COST, {"seconds": seconds})


def at_hand(
    params: Params, dataset: str, build: Build, network: str | None = None
) -> tuple[dict[str, nn.Module] | None, float]:
    """Returns what the stage `train_alone` made, where the recipe at home is `replay`, else None.

    Args:
        params: of the project.
        dataset: its name.
        build: makes a network of the right shape.
        network: what is trained, where it may be another than the data set's classifier: of such a
            one the stage has no model.
    """
    other = network and network != params.profiles[dataset].classifier
    if other or params.training(dataset, "fine_tune").recipe != "replay":
        return None, 0.0
    return read(paths.alone(dataset), list(params.clients), build)


def read(folder: Path, clients: list[str], build: Build) -> tuple[dict[str, nn.Module], float]:
    """Reads what `write` wrote.

    Args:
        folder: its place.
        clients: whose models are wanted.
        build: makes a network of the right shape.

    Raises:
        UserError: a file is absent or damaged, or is of another network.
    """
    cost = read_json(folder / paths.COST)
    require(folder / paths.COST, cost, "seconds")
    models = {}
    for client in clients:
        models[client] = with_state(build(), read_arrays(folder / f"{client}.safetensors"))
    return models, cost["seconds"]
