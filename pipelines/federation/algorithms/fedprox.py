"""FedProx (Li et al. 2020): FedAvg whose local loss has mu / 2 |w - w_global|^2 added.

The added term keeps clients near the global model.
"""

import torch

from pipelines.config.training import Fedprox
from pipelines.federation.algorithms import fedavg
from pipelines.federation.core.local_sgd import Local, sgd
from pipelines.federation.core.messages import Payload
from pipelines.training.tensors import state_of

TELLS = fedavg.TELLS
server = fedavg.server
client = fedavg.client
server_step = fedavg.server_step


def client_update(payload: Payload, client: Local, settings: Fedprox) -> Payload:
    """Adds the gradient of the proximal term, mu (w - w_global), to each of FedAvg's steps."""
    on = next(client.model.parameters()).device
    anchor = [
        torch.as_tensor(payload.arrays[name]).to(on) for name, _ in client.model.named_parameters()
    ]

    def pull(parameters) -> None:
        for parameter, centre in zip(parameters, anchor, strict=True):
            parameter.grad.add_(parameter.detach() - centre, alpha=settings.mu)

    done = sgd(client, payload.arrays, settings, payload.scalars["round"], pull)
    return Payload(state_of(client.model), done)
