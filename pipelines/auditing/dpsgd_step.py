"""The two-worlds audit of one DP-SGD step on a fixed lot: mu = 1 / noise multiplier.

What the adversary sees is the model after the step. Worst case: a lot of one record whose gradient is longer than the
clip, or an empty lot, which must be noised like any other. Sampling, which only makes the attack harder, is left out:
the step is what sampling's arithmetic builds on.
"""

import numpy as np
import torch
from torch import nn

from pipelines.auditing import worlds
from pipelines.blocks.training import Dpsgd
from pipelines.federation.dp import dpsgd
from pipelines.privacy.audits import gdp
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.gaussian import Budget
from pipelines.privacy.noise import Noise
from pipelines.training.tensors import State, state_of, with_state

SETTINGS = Dpsgd(rounds=1, local_steps=1, sampling_rate=0.99, expected_lot=1.0, clipping_norm=0.3, learning_rate=0.5)


def audit(
    budget: Budget, *, runs: int, noise: Noise, settings: Dpsgd = SETTINGS, share_of_noise: float = 1.0
) -> Verdict:
    """`runs` steps from the same weights in each world, with the noise that the budget's account planned, or, for a
    control, a share of it."""
    account = dpsgd.Budgeted(budget.epsilon, budget.delta, settings)
    claimed = 1 / account.noise_multiplier
    account.noise_multiplier *= share_of_noise
    model = network()
    start = state_of(model)
    direction = _direction(model, settings)
    generator = noise.torch_generator("cpu")
    absent, present = (
        np.array([_step(model, start, lot(there), account, generator) @ direction for _ in range(runs)])
        for there in (False, True)
    )
    return gdp.audit(absent, present, mu_claimed=claimed, delta=budget.delta, confidence=worlds.CONFIDENCE)


def network() -> nn.Module:
    """A classifier of 2x2 images, ten parameters, weights far from zero so that no gradient vanishes."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    return with_state(model, {"1.weight": np.eye(2, 4, dtype=np.float32), "1.bias": np.zeros(2, np.float32)})


def lot(with_canary: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """(images, labels) of one white image with a label that the network does not expect, or of none."""
    count = int(with_canary)
    return torch.ones(count, 1, 2, 2), torch.ones(count, dtype=torch.int64)


def _step(model: nn.Module, start: State, lot: tuple, account: dpsgd.Budgeted, generator) -> np.ndarray:
    """float64 [parameters]: how far one noisy step moves the weights."""
    with_state(model, start)
    dpsgd._noisy_step(model, *lot, account, generator)
    return _flat(state_of(model)) - _flat(start)


def _direction(model: nn.Module, settings: Dpsgd) -> np.ndarray:
    """float64 [parameters]: where the canary moves the weights, by the noiseless sums of both worlds."""
    absent, present = (dpsgd.clipped_sum(model, *lot(there), settings.clipping_norm) for there in (False, True))
    return _flat({name: (absent[name] - present[name]).numpy() for name in absent})


def _flat(state: State) -> np.ndarray:
    return np.concatenate([array.ravel() for array in state.values()]).astype(np.float64)
