"""Audits one DP-SGD step on a fixed lot in two worlds: mu = 1 / noise multiplier.

What the adversary sees is the model after the step. Worst case: a lot of one record whose gradient
is longer than the clip, or an empty lot, which must be noised like any other. Sampling, which only
makes the attack harder, is left out: the step is what sampling's arithmetic builds on.
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
    """Takes many steps from the same weights in each world, with the noise that was planned.

    Args:
        budget: The budget of the account.
        runs: Steps in each world.
        noise: The noise source.
        settings: The settings of the algorithm.
        share_of_noise: The share of the planned noise that is added; below 1 for a control.
    """
    account = Account(budget.epsilon, budget.delta, settings)
    claimed = 1 / account.noise_multiplier
    account.noise_multiplier *= share_of_noise
    start = state_of(network())
    direction = _direction(settings)
    absent = np.array([_step(False, start, account, noise) @ direction for _ in range(runs)])
    present = np.array([_step(True, start, account, noise) @ direction for _ in range(runs)])
    return two_worlds.audit(
        absent, present, mu_claimed=claimed, delta=budget.delta, confidence=many_draws.CONFIDENCE
    )


def network() -> nn.Module:
    """Returns a classifier of 2x2 images with ten parameters.

    Its weights are far from zero, so that no gradient vanishes.
    """
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    weights = {"1.weight": np.eye(2, 4, dtype=np.float32), "1.bias": np.zeros(2, np.float32)}
    return with_state(model, weights)


def shard(with_canary: bool) -> Images:
    """Returns one white image with a label that the network does not expect, or none."""
    count = int(with_canary)
    white = np.full((count, 2, 2, 1), 255, np.uint8)
    return Images(white, np.ones(count, np.int64), np.arange(count))


class WholeShard(dpsgd.Client):
    """A client whose every lot is its whole shard, which no sampling hides."""

    def draw_records(self) -> torch.Tensor:
        """Draws all records, bool [n]."""
        return torch.ones(len(self.labels), dtype=torch.bool)


def _step(with_canary: bool, start: State, account: Account, noise: Noise) -> np.ndarray:
    """Returns how far one noisy step on the whole shard moves the weights, [parameters]."""
    client = WholeShard(with_state(network(), start), shard(with_canary), account, noise)
    dpsgd.take_steps(client, 1)
    return flat(state_of(client.model)) - flat(start)


def _direction(settings: Dpsgd) -> np.ndarray:
    """Returns where the canary moves the weights when there is no noise, [parameters].

    It is as long as the clip.
    """
    silent = Account(float("inf"), 1e-5, settings)
    absent = _step(False, state_of(network()), silent, SeededForTests(0))
    present = _step(True, state_of(network()), silent, SeededForTests(0))
    return (present - absent) * settings.expected_lot / settings.learning_rate


def flat(state: State) -> np.ndarray:
    """Returns all weights as one vector, float64 [parameters]."""
    return np.concatenate([array.ravel() for array in state.values()]).astype(np.float64)
