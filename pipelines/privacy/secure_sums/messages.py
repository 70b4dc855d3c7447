"""Holds what travels: flat mappings of arrays and scalars, whatever carries them.

A round has five steps. In each the server asks, and the clients that are left answer.

| step | the server sends | a client answers |
|---|---|---|
| 1 keys | nothing | `channel_key`, `mask_key`, `commitment`, `signature` |
| 2 shares | all of these, with the `places` of those who answered | `sealed`, a row for each place |
| 3 masked | `sealed`, one row of each sender, and the `places` of the senders | `masked` |
| 4 confirm | `places` of those whose masked vectors came: the survivors | `signature` of that set |
| 5 unmask | `signatures`, and the `places` of those who signed | `shares`, one for each place |

Rows and places are those of the roster, from 0 on. A row of somebody who is not meant is zeros.
"""

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from pipelines.privacy.secure_sums.encoding import digest
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.terms import Terms

Places = tuple[int, ...]


class Step(IntEnum):
    """Numbers the steps of a round."""

    KEYS = 1
    SHARES = 2
    MASKED = 3
    CONFIRM = 4
    UNMASK = 5


@dataclass(frozen=True, repr=False)
class Message:
    """Holds one message. Its text shows names and shapes, and no value.

    Attributes:
        arrays: Named numpy arrays.
        scalars: `step`, `round`, and the digest of the terms in hexadecimal, `terms`.
    """

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    scalars: dict[str, int | str] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Returns the size of the arrays, which is nearly all that travels."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def digest(self) -> bytes:
        """Returns a hash of the whole content, 32 bytes."""
        fields = []
        for name in sorted(self.arrays):
            array = self.arrays[name]
            fields += [name, array.dtype.str, str(array.shape), array.tobytes()]
        fields.append("scalars")
        for name in sorted(self.scalars):
            fields += [name, str(self.scalars[name])]
        return digest(*fields)

    def __repr__(self) -> str:
        shapes = {name: array.shape for name, array in self.arrays.items()}
        return f"Message(step={self.scalars.get('step')}, arrays={shapes})"


def message(step: int, terms: Terms, **arrays: np.ndarray) -> Message:
    """Returns a message of a step under these terms."""
    scalars = {"step": int(step), "round": terms.round, "terms": terms.digest.hex()}
    return Message(arrays, scalars)


def step_of(received: Message, terms: Terms) -> Step:
    """Returns the step of a message.

    Raises:
        Refusal: It is of another round, or of other terms, or of no step.
    """
    number = received.scalars.get("round")
    if number != terms.round:
        raise Refusal(
            f"The message is of round {number!r}, and this is round {terms.round}: it is stale, or "
            "was sent again."
        )
    if received.scalars.get("terms") != terms.digest.hex():
        raise Refusal(
            "The message is of other terms: another run, release, roster, length, bound, threshold "
            "or noise. Give all clients and the server the same terms."
        )
    try:
        return Step(received.scalars.get("step"))
    except ValueError:
        raise Refusal(f"There is no step {received.scalars.get('step')!r} in a round.") from None


def array_of(received: Message, name: str, shape: tuple[int, ...], kind: type) -> np.ndarray:
    """Returns an array of a message.

    Args:
        received: The message.
        name: The array's.
        shape: What it must have.
        kind: The type of its entries.

    Raises:
        Refusal: It is not there, or has another shape or kind.
    """
    array = received.arrays.get(name)
    usual = isinstance(array, np.ndarray) and array.dtype == kind and array.shape == shape
    if not usual:
        raise Refusal(f"The array {name!r} must be {np.dtype(kind)}, {shape}.")
    return array


def places_of(received: Message, terms: Terms, *, within: Places, least: int) -> Places:
    """Returns the array `places` of a message.

    Args:
        received: The message.
        terms: The terms.
        within: The places that may be named.
        least: How many must be named, at least.

    Raises:
        Refusal: They are no such places, in rising order, or too few.
    """
    array = received.arrays.get("places")
    usual = isinstance(array, np.ndarray) and array.dtype == np.int64 and array.ndim == 1
    places = tuple(array.tolist()) if usual else ()
    if not usual or list(places) != sorted(set(places)) or not set(places) <= set(within):
        raise Refusal("The array 'places' must name clients that are left, in rising order.")
    if len(places) < least:
        raise Refusal(
            f"{len(places)} of {terms.clients} clients are left, and the threshold is {least}: the "
            "round ends without a sum."
        )
    return places


def rows(count: int, width: int, content: dict[int, bytes]) -> np.ndarray:
    """Returns bytes as the rows of an array, uint8 [count, width]; the other rows are zeros.

    Args:
        count: The number of rows.
        width: The bytes of a row.
        content: {row: its bytes}.
    """
    array = np.zeros((count, width), np.uint8)
    for place, row in content.items():
        array[place] = np.frombuffer(row, np.uint8)
    return array
