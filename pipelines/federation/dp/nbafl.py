"""NbAFL (Wei et al. 2020): local training near the global model, then noise on what is sent, once a round.

Released per round: `sound`, the update clipped to L2 norm C (sensitivity 2 C, add or remove one record, for the update
may turn anywhere in the ball: it is the whole client that is hidden); `paper`, the weights clipped to C, with the
paper's noise, which is a heuristic. Accounted in `nbafl_account`, before the round. What the server does with the
releases is post-processing.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from pipelines.blocks.dp import Nbafl
from pipelines.datasets.containers import Images
from pipelines.federation.algorithms import fedprox
from pipelines.federation.dp import nbafl_account
from pipelines.federation.dp.nbafl_account import Sound
from pipelines.federation.dp.public import Public
from pipelines.federation.dp.watched import Watched
from pipelines.federation.local import hold
from pipelines.federation.messages import Payload, Reply, weighted_mean
from pipelines.training.tensors import State

VERSION = 1  # of the mechanism, in the ledger: raise it when the same parameters would release something else
account = nbafl_account.account


class Client:
    """One client between rounds. Its batches are drawn from the stream that its noise comes from."""

    def __init__(self, model: nn.Module, data: Images, account: Sound, generator: torch.Generator):
        self.account, self.generator = account, generator
        seed = int(torch.randint(2**31, (), generator=generator, device=generator.device))
        self.local = hold(model, data, None, seed)

    def update(self, payload: Payload) -> Payload | None:
        """The noisy weights after local training; None where the budget has gone. Nothing else that training saw."""
        account, settings = self.account, self.account.settings
        if not account.take(1):
            return None
        reached = fedprox.client_update(payload, local=self.local, settings=settings).arrays
        if settings.bound == "paper":
            released = self._noisy(clipped(reached, settings.clipping_norm))
        else:
            update = {name: reached[name] - payload.arrays[name] for name in reached}
            released = self._noisy(clipped(update, settings.clipping_norm))
            released = {name: payload.arrays[name] + array for name, array in released.items()}
        told = {"steps": account.steps, "epsilon_spent": account.epsilon_spent}
        return Payload(released, told | {"noise_multiplier": account.noise_multiplier})

    def _noisy(self, arrays: State) -> State:
        def noise(array: np.ndarray) -> np.ndarray:
            return torch.randn(array.shape, generator=self.generator, device=self.generator.device).cpu().numpy()

        return {name: array + self.account.deviation * noise(array) for name, array in arrays.items()}


def clipped(arrays: State, norm: float) -> State:
    """Scaled to L2 norm at most `norm` over all arrays together; zeros where that is no number, which a hostile
    server's weights could make it."""
    length = sum(float((array.astype(float) ** 2).sum()) for array in arrays.values()) ** 0.5
    if not length < float("inf"):
        return {name: np.zeros_like(array) for name, array in arrays.items()}
    scale = min(1.0, norm / max(length, 1e-12))
    return {name: (scale * array).astype(array.dtype) for name, array in arrays.items()}


def start(weights: State, settings: Nbafl, public: Public | None = None, clients: int = 1) -> Watched:
    return Watched(weights, public)


def step(state: Watched, replies: list[Reply]) -> Watched:
    """The plain mean."""
    weights = weighted_mean(replies, [1.0] * len(replies))
    return replace(state, weights=weights).watching(weights)
