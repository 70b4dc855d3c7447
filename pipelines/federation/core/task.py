"""What a federated method is given: the same for all of them."""

import math
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import nn

from pipelines import seeds
from pipelines.config import Params
from pipelines.config.data import Augmentation
from pipelines.config.generators import WITHOUT_NOISE
from pipelines.datasets.labelled_images import Images
from pipelines.federation.core import local_sgd
from pipelines.training import classifier
from pipelines.training.fixed_features import without_fixed_part
from pipelines.training.tensors import State, device, state_of


@dataclass(frozen=True)
class Task:
    """Holds what a method trains on, and where it begins.

    Attributes:
        data: each client's set, synthetic, or private for the upper bounds. A server between
            machines has none; it has their public sizes, by `len`.
        build: makes a fresh classifier, the same each time.
        augmentation: the data set's public warps, for synthetic sets.
        epsilons: what each client's set was made with, public. Infinite for a set that knows no
            noise, and for private records.
        seed: of everything random in the run.
        shared: the sets that every client holds, where an algorithm shares them; None: `data`.
    """

    data: Mapping[str, Images | Sized]
    build: Callable[[], nn.Module]
    augmentation: Augmentation | None
    epsilons: dict[str, float]
    seed: int
    shared: Mapping[str, Images] | None = None

    def start(self) -> State:
        """Returns the weights before the first round."""
        return state_of(self.build())

    def local(self, client: str) -> local_sgd.Local:
        """Returns a client's records as tensors, beside a model of its own."""
        seed = seeds.derive(self.seed, client)
        return local_sgd.hold(self.build(), self.data[client], self.augmentation, seed)

    @cached_property
    def pool(self) -> torch.Tensor:
        """Returns the images of all shared sets, float32 [n, C, H, W], in client order.

        They are as those that a client holds: fixed features where these never change.
        """
        sets = self.data if self.shared is None else self.shared
        model = self.build()
        on = next(model.parameters()).device
        images = torch.cat([local_sgd.tensors(sets[client], on)[0] for client in sorted(sets)])
        return images if self.augmentation else without_fixed_part(model, images)[1]


def of_clients(
    params: Params,
    dataset: str,
    data: Mapping[str, Images | Sized],
    purpose: str,
    generator: str | None,
) -> Task:
    """Returns the task of a stage.

    Every method of a data set begins from the same model. `purpose` and the generator give each its
    own batches. Private records are not warped.

    Args:
        params: of the project.
        dataset: its name.
        data: each client's set, or its size.
        purpose: what the random numbers are for.
        generator: whose sets they are; None for private records.
    """
    profile = params.profiles[dataset]
    first = seeds.derive(params.seed, "init", dataset)
    noisy = generator not in (None, *WITHOUT_NOISE)
    return Task(
        data=data,
        build=partial(classifier.new, profile, first, device(params.device)),
        augmentation=profile.augmentation if generator else None,
        epsilons={client: params.clients[client].epsilon if noisy else math.inf for client in data},
        seed=seeds.derive(params.seed, purpose, dataset, generator or "private"),
    )
