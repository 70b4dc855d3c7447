"""DP-SCAFFOLD at a client (Noble et al. 2022): steps along noisy gradients less its own drift.

A client's variate is the mean of the noisy gradients of its last round: post-processing, at no cost. It stays at the
client, and what it changed by is sent.
"""

import torch
from torch import nn

from pipelines.federation.core.control_variates import zeros
from pipelines.training.tensors import State, state_of


class Variate:
    def __init__(self, model: nn.Module):
        self.own = zeros(state_of(model))
        self.begin(self.own)

    def begin(self, control: State) -> None:
        """A round with the server's variate c: each step will go along g - c_client + c."""
        self.drift = {name: control[name] - array for name, array in self.own.items()}
        self.total, self.steps = zeros(self.own), 0

    def straighten(self, model: nn.Module) -> None:
        """Notes the released gradients that lie in `grad`, and corrects them."""
        self.steps += 1
        for name, parameter in model.named_parameters():
            self.total[name] += parameter.grad.cpu().numpy()
            parameter.grad.add_(torch.as_tensor(self.drift[name]).to(parameter.device))

    def end(self) -> State:
        """What the variate changes by, to be sent."""
        renewed = {name: array / self.steps for name, array in self.total.items()}
        change = {name: renewed[name] - array for name, array in self.own.items()}
        self.own = renewed
        return change
