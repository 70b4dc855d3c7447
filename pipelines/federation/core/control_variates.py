"""Control variates: SCAFFOLD's (Karimireddy et al. 2020), and DP-SCAFFOLD's (Noble et al. 2022).

A variate estimates the gradient of a client, or of the server. A client steps along its gradient
less its own variate plus the server's, which corrects its drift.
"""

import numpy as np
import torch
from torch import nn

from pipelines.training.tensors import State, state_of

CONTROL = "control."  # before the names of variates


def zeros(weights: State) -> State:
    """Returns the variate before the first round."""
    return {name: np.zeros_like(array) for name, array in weights.items()}


def named(control: State) -> State:
    """Returns a variate under the names that it has in a message."""
    return {CONTROL + name: array for name, array in control.items()}


def parted(arrays: State) -> tuple[State, State]:
    """Returns the weights and the variates of a message."""
    weights = {}
    variates = {}
    for name, array in arrays.items():
        if name.startswith(CONTROL):
            variates[name.removeprefix(CONTROL)] = array
        else:
            weights[name] = array
    return weights, variates


def moved(control: State, mean_change: State, share: float) -> State:
    """Returns the server's variate after a round in which `share` of all clients changed theirs."""
    return {name: array + share * mean_change[name] for name, array in control.items()}


class NoisyVariate:
    """Holds the variate of a client of DP-SCAFFOLD: the mean of its last round's noisy gradients.

    It is post-processing of what was released, at no cost. It stays at the client; what it changed
    by is sent.
    """

    def __init__(self, model: nn.Module):
        self.variate = zeros(state_of(model))
        self.begin(self.variate)

    def begin(self, control: State) -> None:
        """Begins a round in which each step goes along g - c_client + c, with the server's c."""
        self.drift = {name: control[name] - array for name, array in self.variate.items()}
        self.gradient_sum = zeros(self.variate)
        self.steps = 0

    def straighten(self, model: nn.Module) -> None:
        """Adds the released gradients that lie in `grad` to the round's sum, and corrects them."""
        self.steps += 1
        for name, parameter in model.named_parameters():
            self.gradient_sum[name] += parameter.grad.cpu().numpy()
            parameter.grad.add_(torch.as_tensor(self.drift[name]).to(parameter.device))

    def end(self) -> State:
        """Returns what the variate changed by in this round."""
        renewed = {name: array / self.steps for name, array in self.gradient_sum.items()}
        change = {name: renewed[name] - array for name, array in self.variate.items()}
        self.variate = renewed
        return change
