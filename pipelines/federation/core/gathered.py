"""Trains one model on the exported sets that lie at one place. They are public: it costs no privacy."""

from dataclasses import replace

from pipelines import seeds
from pipelines.config.training import Pooled
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.federation.core.task import Task
from pipelines.training import classifier, pool
from pipelines.training.pool import Pool
from pipelines.training.tensors import State, state_of

# the one who holds all sets, in the place of the clients
SERVER = "server"


def at_one_place(task: Task) -> Task:
    """Returns the task of a server that runs all rounds alone, on the union of all sets."""
    return replace(task, data={SERVER: union(task)}, epsilons={SERVER: 1.0}, shared=task.data)


def union(task: Task) -> Images:
    """Returns the images of all sets, in the order of the clients' names."""
    return concatenate([task.data[client] for client in sorted(task.data)])


def trained_on_all(task: Task, settings: Pooled) -> State:
    """Returns the weights of one model that is trained on all sets, with all classes alike.

    Args:
        task: Its `data` are images: whoever trains holds all sets.
        settings: Steps, batch and the peak of the learning rate.
    """
    model = task.build()
    device = next(model.parameters()).device
    everything = Pool(union(task), task.augmentation, device)
    pool.fit(model, everything, settings, seeds.derive(task.seed, "pooled"))
    return state_of(model)


def trained_on(task: Task, data: Images, settings: Pooled, purpose: str) -> State:
    """Returns the weights of a model that is trained on one client's set, with its classes as they are.

    Args:
        task: Where the model begins, and the public warps.
        data: What it is trained on.
        settings: Steps, batch and the peak of the learning rate.
        purpose: What the random numbers are for.
    """
    model = task.build()
    seed = seeds.derive(task.seed, purpose)
    classifier.fit_synthetic(model, data, settings, task.augmentation, seed)
    return state_of(model)
