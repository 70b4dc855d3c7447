"""What crosses between server and clients: dicts of arrays and scalars, nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pipelines.config.values import Block
from pipelines.errors import UserError
from pipelines.training.tensors import State

Scalar = int | float | str
Bounds = Mapping[str, tuple[type, float, float]]  # {name: int or float, lowest, highest}
LARGEST_COUNT = 10**9
LARGEST_LOSS = 1e12
# The largest absolute value of a weight: far above any that trains, far below what overflows a
# float32 within a network.
LARGEST_WEIGHT = 1e6


@dataclass(frozen=True)
class Payload:
    """Holds one message.

    Attributes:
        arrays: named numpy arrays, such as weights or gradients.
        scalars: the round, learning rates, counts and losses.
    """

    arrays: State
    scalars: dict[str, Scalar] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Returns the size of the arrays, which is nearly all that is sent."""
        return sum(array.nbytes for array in self.arrays.values())


@dataclass(frozen=True)
class Reply:
    """Holds what one client answers in a round."""

    client: str
    payload: Payload


@dataclass(frozen=True)
class ServerState:
    """Holds what a server keeps between rounds: the global model. An algorithm with more extends it."""

    weights: State

    @property
    def broadcast(self) -> State:
        """Returns the arrays that every client receives at the beginning of a round."""
        return self.weights

    @property
    def instructions(self) -> dict[str, Scalar]:
        """Returns the scalars that go with the broadcast."""
        return {}

    @property
    def metrics(self) -> dict[str, Scalar]:
        """Returns what the server writes in the log about the last round."""
        return {}


class ClientState:
    """Holds what a client keeps between rounds. It never leaves the client.

    An algorithm whose clients hand something from round to round overrides `memory` and `restore`,
    so that a killed run goes on with the same bytes.
    """

    @property
    def memory(self) -> object:
        """Returns what a checkpoint keeps of the client: numbers, arrays, and dicts of them."""
        return None

    def restore(self, memory: object) -> None:
        """Brings back a checkpoint's `memory` before the first round of a run that goes on."""


@dataclass(frozen=True)
class ScalarRange:
    """Declares a scalar that clients may send: its kind and its range.

    Attributes:
        kind: int or float.
        low, high: the range under any settings; a client sends nothing outside it.
        limits: maps (settings, sizes) to the range that the settings of a run allow, which the
            server checks. `sizes` are the fewest and the most images that a client trains on.
    """

    kind: type
    low: float
    high: float
    limits: Callable[[Block, tuple[int, int]], tuple[float, float]] | None = None


COUNT = ScalarRange(int, 1, LARGEST_COUNT)
LOSS = ScalarRange(float, 0.0, LARGEST_LOSS)
FRACTION = ScalarRange(float, 0.0, 1.0)


def any_bounds(tells: Mapping[str, ScalarRange]) -> Bounds:
    """Returns the range of each scalar under any settings."""
    return {name: (scalar.kind, scalar.low, scalar.high) for name, scalar in tells.items()}


def run_bounds(tells: Mapping[str, ScalarRange], settings: Block, sizes: tuple[int, int]) -> Bounds:
    """Returns the range of each scalar in a run.

    Args:
        tells: the scalars that an algorithm declares.
        settings: those of the run, which server and clients share.
        sizes: the fewest and the most images that a client trains on; public.
    """
    bounds = dict(any_bounds(tells))
    for name, scalar in tells.items():
        if scalar.limits:
            bounds[name] = (scalar.kind, *scalar.limits(settings, sizes))
    return bounds


class Engine(Protocol):
    """Carries messages. Replies come sorted by client, so sums do not depend on who answered first."""

    def call(self, payload: Payload) -> list[Reply]: ...


def weighted_mean(replies: list[Reply], weights: list[float]) -> State:
    """Returns sum w_c x_c / sum w_c over the replies' arrays, added in client order."""
    total = sum(weights)
    return {
        name: sum(
            weight / total * reply.payload.arrays[name] for reply, weight in zip(replies, weights)
        )
        for name in replies[0].payload.arrays
    }


def by_images(replies: list[Reply]) -> list[int]:
    """Returns FedAvg's weights: the size of each client's set. Sizes of synthetic sets are public.

    Raises:
        UserError: as `counted`.
    """
    return counted(replies, "images")


def counted(replies: list[Reply], name: str) -> list[int]:
    """Returns what each client counted, images or steps.

    The number weighs the client's answer. Another value than a count would give one client all the
    weight, or make the mean no mean.

    Raises:
        UserError: a count is no integer of 1 or more.
    """
    counts = [reply.payload.scalars.get(name) for reply in replies]
    for reply, count in zip(replies, counts):
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise UserError(
                f"The number {name!r} that {reply.client} tells must be an int in [1, inf). Got {count!r}."
            )
    return counts
