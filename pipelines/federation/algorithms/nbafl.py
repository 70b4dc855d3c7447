"""NbAFL (Wei et al. 2020): local training near the global model, then noise on what is sent, once a round.

Released per round: `sound`, the update clipped to L2 norm C (sensitivity 2 C, add or remove one
record, for the update may turn anywhere in the ball: it is the whole client that is hidden); `paper`,
the weights clipped to C, with the paper's noise, which is a heuristic. Accounted before the round.
What the server does with the releases is post-processing.

A client's weights after local training follow from all its records at once. Clipped to norm C, or
moved by at most C, they can lie anywhere in that ball whatever record was added or removed:
sensitivity 2 C. The paper takes 2 C / m, m the size of the smallest set, as if weights were a mean of
what single records ask for: m times less noise than it needs.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from torch import nn

from pipelines.config.dp import Nbafl
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import fedprox
from pipelines.federation.core.local_sgd import hold
from pipelines.federation.core.messages import (
    COUNT,
    ClientState,
    Payload,
    Reply,
    ScalarRange,
    weighted_mean,
)
from pipelines.federation.dp.account import ACCOUNT_TELLS, RUN_IDENTITY, Account
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.federation.dp.public import ValidatedServer
from pipelines.privacy import accounting, float_gaussian
from pipelines.privacy.accounting import Steps
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.training.tensors import State

VERSION = 1  # of the mechanism, in the ledger: raise it when the same parameters would release something else
IDENTITY = RUN_IDENTITY | Identity(
    consequences=frozenset(
        {"sensitivity", "sigma", "epsilon_claimed_by_its_paper", "epsilon_at_its_sensitivity"}
    ),
    neutral={"settings.bound": "sound", "settings.mu": 0.0},
)


def _round_limits(settings: Nbafl, sizes: tuple[int, int]) -> tuple[int, int]:
    return 1, settings.rounds


TELLS = {**ACCOUNT_TELLS, "steps": ScalarRange(int, COUNT.low, COUNT.high, _round_limits)}


@dataclass
class Sound(Account):
    """Accounts for a Gaussian release a round, of all records. Gaussian DP composes them exactly."""

    settings: Nbafl

    mechanism = "NbAFL, sound (Gaussian noise on each round's clipped update)"
    accountant = "exact Gaussian DP"
    by = staticmethod(accounting.schedule_epsilon_gdp)
    sampling_rate = 1.0
    leaks = False

    @property
    def planned(self) -> int:
        """Returns the number of releases, one a round."""
        return self.settings.rounds

    @property
    def noise_stddev(self) -> float:
        """Returns the standard deviation of the noise on each weight."""
        return 2 * self.settings.clipping_norm * self.noise_multiplier

    @property
    def details(self) -> dict:
        """Returns the statement's own facts."""
        return {"sensitivity": 2 * self.settings.clipping_norm, "sigma": self.noise_stddev}


@dataclass
class Printed(Sound):
    """Accounts for the paper's noise, which is a heuristic: no guarantee.

    sigma = c T 2 C / (m epsilon), c = sqrt(2 ln(1.25 / delta)), for T rounds in which every client
    uploads. The paper adds noise at the server only where clients upload less often than that.
    """

    mechanism = "NbAFL as its paper prints it, whose noise is for a sensitivity that does not hold,"
    accountant = "none that holds"
    leaks = True

    def __post_init__(self):
        settings = self.settings
        factor = math.sqrt(2 * math.log(1.25 / self.delta))
        # a multiple of 2 C
        self.first = factor * settings.rounds / (settings.records * self.epsilon)
        self.noise_multiplier = self.first
        self.affordable = settings.rounds

    @property
    def details(self) -> dict:
        """Returns the statement's own facts: the paper's claim, and what holds."""
        return {
            **super().details,
            "epsilon_claimed_by_its_paper": self.epsilon,
            "epsilon_at_its_sensitivity": self.claim,
        }


def new_account(
    epsilon: float, delta: float, settings: Nbafl, before: tuple[Steps, ...] = ()
) -> Sound:
    """Plans a client's noise (`NoisyAlgorithm`), by the bound that the settings name."""
    kind = Printed if settings.bound == "paper" else Sound
    return kind(epsilon, delta, settings, before)


class Client(ClientState):
    """Holds one client between rounds. Its batches are drawn from the source that its noise comes from.

    Args:
        model: the client's own network.
        data: its private records.
        account: its budget, and what was taken of it.
        noise: the source of its noise and of the seed of its batches.
    """

    def __init__(self, model: nn.Module, data: Images, account: Sound, noise: Noise):
        self.account = account
        self.noise = noise
        self.local = hold(model, data, None, int(2**31 * noise.uniform(1).item()))

    @property
    def memory(self) -> dict:
        """Returns the rounds that were charged, and the place in a stream of test noise.

        Batches are drawn anew where entropy has no position: nothing of them was released.
        """
        return {"taken": self.account.steps, "noise": self.noise.position}

    def restore(self, memory: dict) -> None:
        """Charges again all that was charged."""
        for _ in range(memory["taken"]):
            self.account.take(1)
        self.noise.move_to(memory["noise"])


def server(task: NoisyTask, settings: Nbafl) -> ValidatedServer:
    """Returns the server's first state."""
    return ValidatedServer(task.start(), task.public)


def client(task: NoisyTask, name: str, settings: Nbafl) -> Client:
    """Returns a client's first state."""
    return Client(task.build(), task.data[name], task.accounts[name], task.sources[name])


def client_update(payload: Payload, client: Client, settings: Nbafl) -> Payload | None:
    """Replies with noisy weights after local training, and nothing else that training saw."""
    account = client.account
    if not account.take(1):
        return None
    # in the model's own kind, whatever a server sends: what follows must not take another's precision
    sent = {name: np.asarray(array, np.float32) for name, array in payload.arrays.items()}
    reached = fedprox.client_update(replace(payload, arrays=sent), client.local, settings).arrays
    base = sent if settings.bound == "sound" else {name: np.float64(0) for name in sent}
    updates = {name: np.float64(reached[name]) - base[name] for name in sent}
    stddev = account.noise_stddev
    noisy = {}
    for name, array in clipped(updates, settings.clipping_norm).items():
        noisy[name] = float_gaussian.release(array, deviation=stddev, noise=client.noise)
    scalars = {
        "steps": account.steps,
        **account.running,
        "signal_to_noise": _signal_to_noise(noisy, stddev),
        "noise_multiplier": account.noise_multiplier,
        "clipping_norm": settings.clipping_norm,
    }
    arrays = {name: (base[name] + noisy[name]).astype(np.float32) for name in sent}
    return Payload(arrays, scalars)


def server_step(state: ValidatedServer, replies: list[Reply]) -> ValidatedServer:
    """Takes the plain mean, for weights by size would tell the sizes."""
    weights = weighted_mean(replies, [1.0] * len(replies))
    return replace(state, weights=weights).validated(weights)


def clipped(arrays: State, norm: float) -> State:
    """Scales arrays to L2 norm at most `norm` over all of them together, in float64.

    Returns zeros where the norm is no number, which weights of a hostile server could make it.
    """
    arrays = {name: np.asarray(array, np.float64) for name, array in arrays.items()}
    with np.errstate(over="ignore", invalid="ignore"):
        length = math.sqrt(sum(float((array**2).sum()) for array in arrays.values()))
    if not math.isfinite(length):
        return {name: np.zeros_like(array) for name, array in arrays.items()}
    scale = min(1.0, norm / max(length, 1e-12))
    return {name: scale * array for name, array in arrays.items()}


def _signal_to_noise(released: State, noise_stddev: float) -> float:
    squares = sum(float(np.square(array).sum()) for array in released.values())
    size = sum(array.size for array in released.values())
    return float_gaussian.signal_to_noise(squares, size, noise_stddev)
