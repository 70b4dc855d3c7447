"""What a federated method is given, and how it is run: the same for all of them."""

import importlib
import json
import math
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

from torch import nn

from pipelines import seeds
from pipelines.config import Params
from pipelines.config.data import Augmentation
from pipelines.config.generators import WITHOUT_NOISE
from pipelines.config.values import Block
from pipelines.datasets.labelled_images import Images
from pipelines.federation.core import checkpoints, local_sgd, rounds
from pipelines.federation.core.messages import Payload
from pipelines.federation.inprocess import InProcess
from pipelines.files import standard
from pipelines.training import classifier
from pipelines.training.tensors import State, device, state_of


@dataclass(frozen=True)
class Task:
    """data: each client's set, synthetic, or private for the upper bounds; at a server between machines, which has
    none, their public sizes, by `len`. build: a fresh classifier, the same each time. augmentation: the data set's
    public warps, for synthetic sets. epsilons: what each client's set was made with, public; infinite for a set that
    knows no noise, and for private records."""

    data: Mapping[str, Images | Sized]
    build: Callable[[], nn.Module]
    augmentation: Augmentation | None
    epsilons: dict[str, float]
    seed: int

    def start(self) -> State:
        """The weights before the first round."""
        return state_of(self.build())

    def local(self, client: str) -> local_sgd.Local:
        return local_sgd.hold(
            self.build(), self.data[client], self.augmentation, seeds.derive(self.seed, client)
        )


def of_clients(
    params: Params,
    dataset: str,
    data: Mapping[str, Images | Sized],
    purpose: str,
    generator: str | None,
) -> Task:
    """The roster's task for a stage. Every method of a data set begins from the same model; `purpose` and the
    generator, None for private records, give each its own batches. Private records are not warped."""
    profile, first = params.profiles[dataset], seeds.derive(params.seed, "init", dataset)
    noisy = generator not in (None, *WITHOUT_NOISE)
    return Task(
        data=data,
        build=partial(classifier.new, profile, first, device(params.device)),
        augmentation=profile.augmentation if generator else None,
        epsilons={client: params.clients[client].epsilon if noisy else math.inf for client in data},
        seed=seeds.derive(params.seed, purpose, dataset, generator or "private"),
    )


class Remembering:
    """A client whose update hands on a memory from round to round; it never leaves the client."""

    def __init__(self, update: Callable):
        self.update, self.memory = update, None

    def __call__(self, payload: Payload) -> Payload:
        answer, self.memory = self.update(payload, memory=self.memory)
        return answer


def algorithm(name: str) -> ModuleType:
    """The module of an algorithm, imported when asked for: MAML's library alone takes seconds."""
    return importlib.import_module(f"pipelines.federation.algorithms.{name}")


def federate(
    name: str, task: Task, settings: Block, unfinished: Path | None = None
) -> rounds.History:
    """Runs an algorithm over the task's clients, in this process. unfinished: where a killed run left what it had."""
    module = algorithm(name)
    held = extra(module, task)
    engine, first = in_process(module, task, settings, held), module.server(task, settings)
    journal = checkpoints.Journal(unfinished, _stamp(name, task, settings) if unfinished else "")
    history = rounds.run(
        first, module.server_step, engine, rounds=settings.rounds, name=name, journal=journal
    )
    for pool in held.values():  # every image up once and down to all, a byte per pixel
        history.cost["bytes_up"] += pool.images.numel()
        history.cost["bytes_down"] += pool.images.numel() * len(task.data)
    return history


def _stamp(name: str, task: Task, settings: Block) -> str:
    """Of all that the run's models follow from."""
    warps, model = task.augmentation and task.augmentation.model_dump(), task.build()
    where = str(next(model.parameters()).device)
    said = [name, settings.model_dump(), task.epsilons, warps, task.seed, sorted(task.data), where]
    arrays = [
        array for _, data in sorted(task.data.items()) for array in (data.images, data.labels)
    ]
    facts = [json.dumps(standard(said), sort_keys=True).encode()]
    return checkpoints.stamp(
        *facts, *(array.tobytes() for array in (*arrays, *state_of(model).values()))
    )


def in_process(module: ModuleType, task: Task, settings: Block, held: dict) -> InProcess:
    """Every client of the task, its records and its model at hand. held: `extra`."""
    return InProcess(
        {
            client: handler(module, task.local(client), settings, held)
            for client in sorted(task.data)
        }
    )


def extra(module: ModuleType, task: Task) -> dict:
    """What all clients of an algorithm hold beside their own set, if anything."""
    return {"shared": module.shared(task)} if hasattr(module, "shared") else {}


def handler(
    module: ModuleType, own: local_sgd.Local, settings: Block, held: dict
) -> Callable[[Payload], Payload]:
    """A client's update with its set bound, and what all clients hold."""
    update = partial(module.client_update, local=own, settings=settings, **held)
    return Remembering(update) if getattr(module, "REMEMBERS", False) else update
