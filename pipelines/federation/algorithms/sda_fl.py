"""SDA-FL (Li et al. 2022) on synthetic data: a shared pool under pseudo-labels beside each client's own set.

Each round a client labels the pool, which is all clients' synthetic sets, with the global model
that it was sent. It keeps the images whose largest class probability reaches `confidence`, and
trains on its own set and those. The server averages as FedAvg. The authors' server sends the
pseudo-labels: a function of weights and pool, so each client computes the same. Their clients train
on private records too, which nothing makes private once the weights leave; here nobody does. In the
first rounds nothing is sure and clients train alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from pipelines.config.training import SdaFl
from pipelines.federation.algorithms import fedavg
from pipelines.federation.core.local_sgd import Local, sgd
from pipelines.federation.core.messages import FRACTION, ClientState, Payload
from pipelines.federation.core.task import Task
from pipelines.training.tensors import State, logits, state_of, with_state

SHARES_SETS = True
TELLS = {**fedavg.TELLS, "pseudo_labelled": FRACTION}
server = fedavg.server
server_step = fedavg.server_step


@dataclass(frozen=True)
class SdaClient(ClientState):
    """Holds a client's own set, and the pool, float32 [n, C, H, W], which it downloads once."""

    local: Local
    pool: torch.Tensor


@dataclass(frozen=True)
class PseudoLabels:
    """Holds which images of the pool a model is sure of, bool [n], and the classes of those."""

    kept: torch.Tensor
    labels: torch.Tensor


def client(task: Task, name: str, settings: SdaFl) -> SdaClient:
    """Returns a client with its own set and the pool."""
    return SdaClient(task.local(name), task.pool)


def client_update(payload: Payload, client: SdaClient, settings: SdaFl) -> Payload:
    """Labels the pool, and trains on the client's own set and what the model is sure of."""
    return _train(payload, client, settings, pseudo_labels(client, payload.arrays, settings))


def update_all(
    payload: Payload, clients: Mapping[str, SdaClient], settings: SdaFl
) -> dict[str, Payload]:
    """Does a round of all clients of one process, which label their common pool once.

    Args:
        payload: the server's broadcast.
        clients: {name: state}, all with the same pool.
        settings: those of the run.
    """
    labelled = pseudo_labels(next(iter(clients.values())), payload.arrays, settings)
    return {name: _train(payload, clients[name], settings, labelled) for name in sorted(clients)}


def pseudo_labels(client: SdaClient, weights: State, settings: SdaFl) -> PseudoLabels:
    """Labels the pool with the model of these weights."""
    model = with_state(client.local.model, weights)
    largest, labels = logits(model, client.pool).softmax(1).max(1)
    kept = largest >= settings.confidence
    return PseudoLabels(kept, labels[kept])


def _train(payload: Payload, client: SdaClient, settings: SdaFl, labelled: PseudoLabels) -> Payload:
    local = client.local
    images = torch.cat([local.images, client.pool[labelled.kept]])
    labels = torch.cat([local.labels, labelled.labels])
    mixed = replace(local, images=images, labels=labels)
    done = sgd(mixed, payload.arrays, settings, payload.scalars["round"])
    share = labelled.kept.float().mean().item()
    return Payload(state_of(local.model), {**done, "pseudo_labelled": share})
