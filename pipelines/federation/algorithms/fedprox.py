"""FedProx (Li et al. 2020): FedAvg whose local loss has mu / 2 |w - w_global|^2 added, so that clients stay near."""

import torch

from pipelines.config.training import Fedprox
from pipelines.federation.algorithms import fedavg
from pipelines.federation.core.local_sgd import Local, sgd
from pipelines.federation.core.messages import Payload
from pipelines.training.tensors import state_of

server, server_step = fedavg.server, fedavg.server_step


def client_update(payload: Payload, *, local: Local, settings: Fedprox) -> Payload:
    """FedAvg's, each gradient with mu (w - w_global) added: that of the proximal term."""
    on = next(local.model.parameters()).device
    anchor = [
        torch.as_tensor(payload.arrays[name]).to(on) for name, _ in local.model.named_parameters()
    ]

    def pull(parameters) -> None:
        for parameter, centre in zip(parameters, anchor, strict=True):
            parameter.grad.add_(parameter.detach() - centre, alpha=settings.mu)

    done = sgd(local, payload.arrays, settings, payload.scalars["round"], pull)
    return Payload(state_of(local.model), done)
