"""What crosses between server and clients: dicts of arrays and scalars, nothing else."""

from dataclasses import dataclass, field
from typing import Protocol

from pipelines.training.tensors import State

Scalar = int | float | str


@dataclass(frozen=True)
class Payload:
    """arrays: named numpy arrays (weights or gradients). scalars: the round, rates, counts."""

    arrays: State
    scalars: dict[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    client: str
    payload: Payload


class Engine(Protocol):
    """Carries messages. Replies come sorted by client, so sums do not depend on who answered first."""

    def call(self, payload: Payload) -> list[Reply]: ...


def weighted_mean(replies: list[Reply], weights: list[float]) -> State:
    """sum w_c x_c / sum w_c over the replies' arrays, added in client order."""
    total = sum(weights)
    return {
        name: sum(weight / total * reply.payload.arrays[name] for reply, weight in zip(replies, weights))
        for name in replies[0].payload.arrays
    }
