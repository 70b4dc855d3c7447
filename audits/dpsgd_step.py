"""The two-worlds audit of one DP-SGD step on a fixed lot: mu = 1 / noise multiplier.

What the adversary sees is the model after the step. Worst case: a lot of one record whose gradient is longer than the
clip, or an empty lot, which must be noised like any other. Sampling, which only makes the attack harder, is left out:
the step is what sampling's arithmetic builds on.
"""

import numpy as np
import torch
from torch import nn

from audits import many_draws
from pipelines.config.dp import Dpsgd
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import dpsgd
from pipelines.federation.dp.account import Account
from pipelines.privacy.audits import two_worlds
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import Noise, SeededForTests
from pipelines.training.tensors import State, state_of, with_state

SETTINGS = Dpsgd(
    rounds=1,
    local_steps=1,
    local_steps_rule="fixed",
    most_local_steps=1,
    prior_distance=1.0,
    sampling_rate=0.99,
    expected_lot=1.0,
    noise_multiplier=None,
    noise_control="const",
    noise_decay=1.0,
    noise_threshold=1e-3,
    noise_least=0.5,
    clipping="const",
    clipping_norm=0.3,
    clipping_factor=1.0,
    clipping_quantile=0.5,
    clipping_rate=0.2,
    clipping_noise=3.54,
    allow_nonprivate=False,
    control_variates=False,
    optimiser="sgd",
    learning_rate=0.5,
    momentum=0.0,
    averaging=0.0,
    network=None,
    activation="relu",
    warm_start=None,
)


def audit(
    budget: Budget,
    *,
    runs: int,
    noise: Noise,
    settings: Dpsgd = SETTINGS,
    share_of_noise: float = 1.0,
) -> Verdict:
    """`runs` steps from the same weights in each world, with the noise that the budget's account planned, or, for a
    control, a share of it."""
    account = Account(budget.epsilon, budget.delta, settings)
    claimed = 1 / account.noise_multiplier
    account.noise_multiplier *= share_of_noise
    start, direction = state_of(network()), _direction(settings)
    absent, present = (
        np.array([_step(there, start, account, noise) @ direction for _ in range(runs)])
        for there in (False, True)
    )
    return two_worlds.audit(
        absent, present, mu_claimed=claimed, delta=budget.delta, confidence=many_draws.CONFIDENCE
    )


def network() -> nn.Module:
    """A classifier of 2x2 images, ten parameters, weights far from zero so that no gradient vanishes."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    return with_state(
        model, {"1.weight": np.eye(2, 4, dtype=np.float32), "1.bias": np.zeros(2, np.float32)}
    )


def shard(with_canary: bool) -> Images:
    """One white image with a label that the network does not expect, or none."""
    count = int(with_canary)
    return Images(
        np.full((count, 2, 2, 1), 255, np.uint8), np.ones(count, np.int64), np.arange(count)
    )


def _step(with_canary: bool, start: State, account: Account, noise: Noise) -> np.ndarray:
    """float64 [parameters]: how far one noisy step on the whole shard moves the weights."""
    client = dpsgd.Client(with_state(network(), start), shard(with_canary), account, noise)
    client.noisy_step(torch.ones(len(client.labels), dtype=torch.bool))
    return _flat(state_of(client.model)) - _flat(start)


def _direction(settings: Dpsgd) -> np.ndarray:
    """float64 [parameters]: where the canary moves the weights when there is no noise, as long as the clip."""
    silent = Account(float("inf"), 1e-5, settings)
    absent, present = (
        _step(there, state_of(network()), silent, SeededForTests(0)) for there in (False, True)
    )
    return (present - absent) * settings.expected_lot / settings.learning_rate


def _flat(state: State) -> np.ndarray:
    return np.concatenate([array.ravel() for array in state.values()]).astype(np.float64)
