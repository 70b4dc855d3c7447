"""SDA-FL (Li et al. 2022) on synthetic data: a shared pool under pseudo-labels beside each client's own set.

Each round a client labels the pool, which is all clients' synthetic sets, with the global model it was sent, keeps the
images whose largest class probability reaches `confidence`, and trains on its own set and those; the server averages as
FedAvg. The authors' server sends the pseudo-labels: a function of weights and pool, so each client computes the same.
Their clients train on private records too, which nothing makes private once the weights leave; here nobody does. In the
first rounds nothing is sure and clients train alone.
"""

import torch

from pipelines.blocks.training import SdaFl
from pipelines.federation.algorithms import fedavg
from pipelines.federation.local import Local, sgd
from pipelines.federation.messages import Payload
from pipelines.federation.task import Task
from pipelines.training.tensors import logits, state_of, with_state

server, server_step = fedavg.server, fedavg.server_step


def shared(task: Task) -> torch.Tensor:
    """The pool, [n, C, H, W], in client order: what each client downloads once."""
    return torch.cat([task.local(client).images for client in sorted(task.data)])


def client_update(payload: Payload, *, local: Local, settings: SdaFl, shared: torch.Tensor) -> Payload:
    with_state(local.model, payload.arrays)
    kept, labels = _sure(local.model, shared, settings.confidence)
    both = torch.cat([local.images, shared[kept]]), torch.cat([local.labels, labels])
    mixed = Local(local.model, *both, local.augmentation, local.seed)
    done = sgd(mixed, payload.arrays, settings, payload.scalars["round"])
    return Payload(state_of(local.model), {**done, "pseudo_labelled": kept.float().mean().item()})


def _sure(model: torch.nn.Module, pool: torch.Tensor, confidence: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(which images the model is sure of, bool [n]; their classes)."""
    largest, labels = logits(model, pool).softmax(1).max(1)
    kept = largest >= confidence
    return kept, labels[kept]
