"""FedAvg (McMahan et al. 2017): local SGD epochs, then the mean of the weights by size of set."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from pipelines import seeds
from pipelines.blocks.training import Fedavg
from pipelines.datasets.containers import Images
from pipelines.federation.messages import Payload, Reply, weighted_mean
from pipelines.training.supervised import batches
from pipelines.training.tensors import State, state_of, tensors, with_state


@dataclass(frozen=True)
class Server:
    weights: State


def client_update(payload: Payload, *, model: nn.Module, data: Images, settings: Fedavg, seed: int) -> Payload:
    """`local_epochs` of SGD from the global model; replies with the weights and the size of the set."""
    with_state(model, payload.arrays)
    on = next(model.parameters()).device
    images, labels = tensors(data, on)
    optimiser = torch.optim.SGD(model.parameters(), lr=settings.learning_rate)
    generator = torch.Generator().manual_seed(seeds.derive(seed, payload.scalars["round"]))
    losses = []
    for _ in range(settings.local_epochs):
        for rows in batches(len(labels), settings.batch, generator):
            loss = F.cross_entropy(model(images[rows]), labels[rows])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    return Payload(state_of(model), {"images": len(labels), "train_loss": sum(losses) / len(losses)})


def server_step(state: Server, replies: list[Reply]) -> Server:
    return Server(weighted_mean(replies, [reply.payload.scalars["images"] for reply in replies]))
