"""SDA-FL (Li et al. 2022) on synthetic data: a shared pool under pseudo-labels beside each client's own set.

Each round a client labels the pool, which is all clients' synthetic sets, with the global model it was sent, keeps the
images whose largest class probability reaches `confidence`, and trains on its own set and those; the server averages as
FedAvg. The authors' server sends the pseudo-labels: a function of weights and pool, so each client computes the same.
Their clients train on private records too, which nothing makes private once the weights leave; here nobody does. In the
first rounds nothing is sure and clients train alone.
"""

import hashlib

import torch

from pipelines.config.training import SdaFl
from pipelines.federation.algorithms import fedavg
from pipelines.federation.core.local_sgd import Local, sgd
from pipelines.federation.core.messages import Payload
from pipelines.federation.core.task import Task
from pipelines.training.tensors import State, logits, state_of, with_state

server, server_step = fedavg.server, fedavg.server_step


class Pool:
    """images: [n, C, H, W], in client order: what each client downloads once. Clients of one process label it once a
    round: the same weights say the same."""

    def __init__(self, images: torch.Tensor):
        self.images, self.weights, self.said = images, b"", None

    def sure(
        self, model: torch.nn.Module, weights: State, confidence: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(which images the model with these weights is sure of, bool [n]; their classes)."""
        digest = hashlib.sha256(b"".join(array.tobytes() for array in weights.values())).digest()
        if digest != self.weights:
            self.said = logits(with_state(model, weights), self.images).softmax(1).max(1)
            self.weights = digest
        largest, labels = self.said
        kept = largest >= confidence
        return kept, labels[kept]


def shared(task: Task) -> Pool:
    return Pool(torch.cat([task.local(client).images for client in sorted(task.data)]))


def client_update(payload: Payload, *, local: Local, settings: SdaFl, shared: Pool) -> Payload:
    kept, labels = shared.sure(local.model, payload.arrays, settings.confidence)
    both = torch.cat([local.images, shared.images[kept]]), torch.cat([local.labels, labels])
    mixed = Local(local.model, *both, local.augmentation, local.seed)
    done = sgd(mixed, payload.arrays, settings, payload.scalars["round"])
    return Payload(state_of(local.model), {**done, "pseudo_labelled": kept.float().mean().item()})
