"""Control variates in what is sent: SCAFFOLD's (Karimireddy et al. 2020), and DP-SCAFFOLD's (Noble et al. 2022)."""

import numpy as np

from pipelines.training.tensors import State

CONTROL = "control."  # before the names of variates


def zeros(weights: State) -> State:
    return {name: np.zeros_like(array) for name, array in weights.items()}


def named(control: State) -> State:
    return {CONTROL + name: array for name, array in control.items()}


def parted(arrays: State) -> tuple[State, State]:
    """(weights, variates)."""
    variates = {
        name.removeprefix(CONTROL): array
        for name, array in arrays.items()
        if name.startswith(CONTROL)
    }
    return {name: array for name, array in arrays.items() if not name.startswith(CONTROL)}, variates


def moved(control: State, mean_change: State, share: float) -> State:
    """The server's variate after a round in which `share` of all clients changed theirs."""
    return {name: array + share * mean_change[name] for name, array in control.items()}
