"""What crosses between server and clients: dicts of arrays and scalars, nothing else."""

from dataclasses import dataclass, field
from typing import Protocol

from pipelines.errors import UserError
from pipelines.training.tensors import State

Scalar = int | float | str


@dataclass(frozen=True)
class Payload:
    """arrays: named numpy arrays (weights or gradients). scalars: the round, rates, counts."""

    arrays: State
    scalars: dict[str, Scalar] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Of the arrays, which is nearly all that is sent."""
        return sum(array.nbytes for array in self.arrays.values())


@dataclass(frozen=True)
class Reply:
    client: str
    payload: Payload


@dataclass(frozen=True)
class Server:
    """What every server keeps between rounds: the global model. An algorithm with more to keep extends it."""

    weights: State

    @property
    def sent(self) -> State:
        """What each round begins with, at every client."""
        return self.weights

    @property
    def asked(self) -> dict[str, Scalar]:
        """What is sent beside it."""
        return {}

    @property
    def told(self) -> dict[str, Scalar]:
        """What the server says of the last round in the log."""
        return {}


class Engine(Protocol):
    """Carries messages. Replies come sorted by client, so sums do not depend on who answered first."""

    def call(self, payload: Payload) -> list[Reply]: ...


def weighted_mean(replies: list[Reply], weights: list[float]) -> State:
    """sum w_c x_c / sum w_c over the replies' arrays, added in client order."""
    total = sum(weights)
    return {
        name: sum(
            weight / total * reply.payload.arrays[name] for reply, weight in zip(replies, weights)
        )
        for name in replies[0].payload.arrays
    }


def by_images(replies: list[Reply]) -> list[int]:
    """FedAvg's weights: the size of each client's set. Of synthetic sets, sizes are public.

    Raises:
        UserError: as `counted`.
    """
    return counted(replies, "images")


def counted(replies: list[Reply], name: str) -> list[int]:
    """Returns what each client counted, images or steps. It weighs the client's answer, so it must be a count.

    Raises:
        UserError: it is no integer of 1 or more, which gives a client all the weight, or makes the mean no mean.
    """
    counts = [reply.payload.scalars.get(name) for reply in replies]
    for reply, count in zip(replies, counts):
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise UserError(
                f"The number {name!r} that {reply.client} tells must be an int in [1, inf). Got {count!r}."
            )
    return counts
