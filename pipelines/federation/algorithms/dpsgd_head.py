"""Trains one linear head on fixed features with all clients: a noisy full-batch step each round.

Released by each client: in its first round the number of its records, and in each later round the sum
of its records' clipped gradients, both with noise of its own. Sums are in units of the clipping norm C,
so that each sensitivity is 1 when one record is added or removed. Both are integers on a lattice with
discrete Gaussian noise (`privacy/lattice_gradients`). All records take part in each step, so that the
steps are adaptive Gaussian releases, whose mu squared adds up exactly. Accounted per client before each
release (`dp.head_account`). Unlike floats, these sums have no rounding that a server could read, so that
the method may be served to servers on other machines.

The sum over clients is the sum over records, whoever owns them: how labels are dealt changes nothing.
The number of steps and their rate follow from what clients released. That, momentum and averaging are
post-processing.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from pipelines.config.dp import DpsgdHead
from pipelines.datasets.labelled_images import Images
from pipelines.federation.core.messages import (
    COUNT,
    LARGEST_COUNT,
    LARGEST_WEIGHT,
    ClientState,
    Payload,
    Reply,
    Scalar,
    ScalarRange,
    ServerState,
)
from pipelines.federation.dp.account import ACCOUNT_TELLS, RUN_IDENTITY
from pipelines.federation.dp.head_account import HeadAccount
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.privacy import float_gaussian
from pipelines.privacy.accounting import Steps
from pipelines.privacy.discrete_gaussian import release
from pipelines.privacy.lattice_gradients import gradient_sum
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.training import linear_head
from pipelines.training.fixed_features import Fixed
from pipelines.training.linear_head import LEAST_COUNT, Descent
from pipelines.training.tensors import State

# of the mechanism, in the ledger: raise it when the same parameters would release something else
VERSION = 1
IDENTITY = RUN_IDENTITY | Identity(
    consequences=frozenset({"count", "gradients"}),
    neutral={"settings.averaging": 0.0, "settings.warps": None},
)
# sums on a lattice: a server on another machine may have them (`network.client`)
SERVED_BETWEEN_MACHINES = True


def _step_limits(settings: DpsgdHead, sizes: tuple[int, int]) -> tuple[int, int]:
    return 0, settings.rounds - 1


TELLS = {
    **ACCOUNT_TELLS,
    "steps": ScalarRange(int, 0, COUNT.high, _step_limits),
    "records": ScalarRange(float, LEAST_COUNT, float(LARGEST_COUNT)),
}


def new_account(
    epsilon: float, delta: float, settings: DpsgdHead, before: tuple[Steps, ...] = ()
) -> HeadAccount:
    """Plans a client's noise (`NoisyAlgorithm`)."""
    return HeadAccount(epsilon, delta, settings, before)


@dataclass(frozen=True, kw_only=True)
class HeadServer(ServerState):
    """Holds what the server keeps between rounds.

    Attributes:
        weights: The head that is handed out, the average of the iterates.
        descent: The head in mid-course, a `Descent`, which a checkpoint brings back as a tuple.
        settings: Those of the run.
        steps: How many noisy steps there are; 0 before the counts are in.
        learning_rate: Of the steps.
    """

    descent: tuple
    settings: DpsgdHead
    steps: int = 0
    learning_rate: float = 0.0

    @property
    def broadcast(self) -> State:
        """Returns the iterate, at which clients compute their gradients."""
        (name,) = self.weights
        return {name: Descent(*self.descent).weights.T.astype(np.float32)}

    @property
    def instructions(self) -> dict[str, Scalar]:
        """Returns how many steps there are, once it is known."""
        return {"planned_steps": self.steps} if self.steps else {}


class Client(ClientState):
    """Holds one client between rounds: its records on the lattice, its account and its noise.

    Args:
        data: Its private records.
        weights: The shape of the head, as an array [K, d].
        account: Its budget, and what was taken of it.
        noise: The source of its noise.
        fixed: Which fixed features its records have; None: scattering.

    Raises:
        UserError: Delta is too small for the lattice of the noise, or epsilon for the noise.
    """

    def __init__(
        self,
        data: Images,
        weights: np.ndarray,
        account: HeadAccount,
        noise: Noise,
        fixed: Fixed | None = None,
    ):
        self.account = account
        self.noise = noise
        self.inputs = linear_head.lattice_inputs(data, fixed, account.settings.warps)
        self.count = None
        self.scale = account.lattice_steps(weights.size)

    @property
    def memory(self) -> dict:
        """Returns what was released and charged, and the place in a stream of test noise."""
        return {
            "count": self.count,
            "planned": self.account.fixed_steps,
            "taken": self.account.steps,
            "noise": self.noise.position,
        }

    def restore(self, memory: dict) -> None:
        """Charges again all that was charged."""
        self.count = memory["count"]
        if memory["planned"]:
            self.account.fix_steps(memory["planned"])
        self.account.take(memory["taken"])
        self.noise.move_to(memory["noise"])

    def release_count(self) -> None:
        """Releases the number of records with noise. It is part of each account from the start."""
        noisy = linear_head.released_count(
            self.inputs.records,
            sigma=self.account.count_sigma,
            scale=self.scale,
            noise=self.noise,
        )
        self.count = min(noisy, float(LARGEST_COUNT))

    def release_gradient(self, weights: np.ndarray) -> np.ndarray:
        """Releases the sum of clipped gradients with noise, over C and the released count.

        Args:
            weights: What the server sent, [K, d].

        Returns:
            float64 [K, d].
        """
        clipping_norm = self.account.settings.clipping_norm
        total = gradient_sum(self.inputs, weights.T, clipping_norm=clipping_norm, scale=self.scale)
        sigma = self.account.noise_multiplier
        return release(total, sigma=sigma, scale=self.scale, noise=self.noise).T / self.count

    def reply(self, name: str, gradient: np.ndarray) -> Payload:
        """Returns the answer of a round: what was released, and what the account tells."""
        deviation = self.account.noise_multiplier / self.count
        squares = float(np.square(gradient).sum())
        ratio = float_gaussian.signal_to_noise(squares, gradient.size, deviation)
        scalars = {
            "steps": self.account.steps,
            "records": self.count,
            **self.account.running,
            "signal_to_noise": max(ratio, -1.0),
            "noise_multiplier": self.account.noise_multiplier,
            "clipping_norm": self.account.settings.clipping_norm,
        }
        # a server takes no larger weight
        return Payload(
            {name: gradient.clip(-LARGEST_WEIGHT, LARGEST_WEIGHT).astype(np.float32)}, scalars
        )


def server(task: NoisyTask, settings: DpsgdHead) -> HeadServer:
    """Returns the server's first state."""
    weights = task.start()
    (array,) = weights.values()
    classes, inputs = array.shape
    return HeadServer(weights, descent=linear_head.start(inputs, classes), settings=settings)


def client(task: NoisyTask, name: str, settings: DpsgdHead) -> Client:
    """Returns a client's first state."""
    (array,) = task.start().values()
    return Client(task.data[name], array, task.accounts[name], task.sources[name], task.fixed)


def client_update(payload: Payload, client: Client, settings: DpsgdHead) -> Payload | None:
    """Releases the count in the first round, and a noisy sum of gradients in each later one."""
    ((name, weights),) = payload.arrays.items()
    if client.count is None:
        client.release_count()
        return client.reply(name, np.zeros(weights.shape))
    client.account.fix_steps(payload.scalars.get("planned_steps", settings.rounds))
    if not client.account.take(1):
        return None
    return client.reply(name, client.release_gradient(weights))


def server_step(state: HeadServer, replies: list[Reply]) -> HeadServer:
    """Plans the steps from the counts, and later takes a step along the mean noisy gradient."""
    if not state.steps:
        return _planned(state, replies)
    records = [reply.payload.scalars["records"] for reply in replies]
    gradient = 0.0
    for reply, count in zip(replies, records):
        (mean,) = reply.payload.arrays.values()
        gradient = gradient + count / sum(records) * mean.T.astype(np.float64)
    descent = linear_head.after(
        Descent(*state.descent),
        gradient,
        learning_rate=state.learning_rate,
        momentum=state.settings.momentum,
        averaging=state.settings.averaging,
    )
    (name,) = state.weights
    weights = {name: descent.average.T.astype(np.float32)}
    return replace(state, weights=weights, descent=descent)


def _planned(state: HeadServer, replies: list[Reply]) -> HeadServer:
    """Returns the state with the number of steps and their rate.

    The variances of the clients' noises add up. With one step, a client's noise is 1 / mu.
    """
    records = sum(reply.payload.scalars["records"] for reply in replies)
    variance = sum(reply.payload.scalars["noise_multiplier"] ** 2 for reply in replies)
    signal = records / math.sqrt(variance) if variance else math.inf
    schedule = linear_head.schedule_of(state.settings, signal)
    steps = min(schedule.steps, state.settings.rounds - 1)
    return replace(state, steps=steps, learning_rate=schedule.learning_rate)
