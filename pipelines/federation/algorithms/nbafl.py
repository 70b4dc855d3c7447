"""NbAFL (Wei et al. 2020): local training near the global model, then noise on what is sent, once a round.

Released per round: `sound`, the update clipped to L2 norm C (sensitivity 2 C, add or remove one record, for the update
may turn anywhere in the ball: it is the whole client that is hidden); `paper`, the weights clipped to C, with the
paper's noise, which is a heuristic. Accounted in `nbafl_account`, before the round. What the server does with the
releases is post-processing.
"""

import math
from dataclasses import replace

import numpy as np
from torch import nn

from pipelines.config.dp import Nbafl
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import fedprox
from pipelines.federation.core.local_sgd import hold
from pipelines.federation.core.messages import Payload, Reply, weighted_mean
from pipelines.federation.dp import nbafl_account
from pipelines.federation.dp.account import IDENTITY as ANY_NOISY_RUN
from pipelines.federation.dp.nbafl_account import Sound
from pipelines.federation.dp.public import Public
from pipelines.federation.dp.watched import Watched
from pipelines.federation.inprocess import InProcess
from pipelines.privacy import float_gaussian
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.training.tensors import State

VERSION = 1  # of the mechanism, in the ledger: raise it when the same parameters would release something else
IDENTITY = ANY_NOISY_RUN | Identity(
    consequences=frozenset(
        {"sensitivity", "sigma", "epsilon_claimed_by_its_paper", "epsilon_at_its_sensitivity"}
    ),
    neutral={"settings.bound": "sound", "settings.mu": 0.0},
)
account, engine = nbafl_account.account, InProcess


class Client:
    """One client between rounds. Its batches are drawn from the source that its noise comes from."""

    def __init__(self, model: nn.Module, data: Images, account: Sound, noise: Noise):
        self.account, self.noise = account, noise
        self.local = hold(model, data, None, int(2**31 * noise.uniform(1).item()))

    @property
    def memory(self) -> dict:
        """Its batches are drawn anew where entropy has no position: nothing of them was released."""
        return {"taken": self.account.steps, "noise": self.noise.position}

    @memory.setter
    def memory(self, kept: dict) -> None:
        for _ in range(kept["taken"]):
            self.account.take(1)
        self.noise.move_to(kept["noise"])

    def __call__(self, payload: Payload) -> Payload | None:
        """The noisy weights after local training; None where the budget has gone. Nothing else that training saw."""
        account, settings = self.account, self.account.settings
        if not account.take(1):
            return None
        # in the model's own kind, whatever a server sends: what follows must not take another's precision
        sent = {name: np.asarray(array, np.float32) for name, array in payload.arrays.items()}
        reached = fedprox.client_update(
            replace(payload, arrays=sent), local=self.local, settings=settings
        ).arrays
        base = sent if settings.bound == "sound" else {name: np.float64(0) for name in sent}
        cut = clipped(
            {name: np.float64(reached[name]) - base[name] for name in sent}, settings.clipping_norm
        )
        noisy = {
            name: float_gaussian.release(array, deviation=account.deviation, noise=self.noise)
            for name, array in cut.items()
        }
        told = {
            "steps": account.steps,
            **account.running,
            "signal_to_noise": _ratio(noisy, account.deviation),
        }
        told |= {
            "noise_multiplier": account.noise_multiplier,
            "clipping_norm": settings.clipping_norm,
        }
        arrays = {name: (base[name] + noisy[name]).astype(np.float32) for name in sent}
        return Payload(arrays, told)


def _ratio(released: State, deviation: float) -> float:
    squares = sum(float(np.square(array).sum()) for array in released.values())
    size = sum(array.size for array in released.values())
    return float_gaussian.signal_to_noise(squares, size, deviation)


def clipped(arrays: State, norm: float) -> State:
    """float64, scaled to L2 norm at most `norm` over all arrays together; zeros where that is no number, which weights
    of a hostile server could make it."""
    arrays = {name: np.asarray(array, np.float64) for name, array in arrays.items()}
    with np.errstate(over="ignore", invalid="ignore"):
        length = math.sqrt(sum(float((array**2).sum()) for array in arrays.values()))
    if not math.isfinite(length):
        return {name: np.zeros_like(array) for name, array in arrays.items()}
    scale = min(1.0, norm / max(length, 1e-12))
    return {name: scale * array for name, array in arrays.items()}


def start(
    weights: State, settings: Nbafl, public: Public | None = None, clients: int = 1
) -> Watched:
    return Watched(weights, public)


def step(state: Watched, replies: list[Reply]) -> Watched:
    """The plain mean."""
    weights = weighted_mean(replies, [1.0] * len(replies))
    return replace(state, weights=weights).watching(weights)
