"""What a client takes from a server and what it answers; nothing else passes, whatever carries the messages.

The server may be dishonest: it may send anything, at any time, as often as it likes. A client answers rounds in their
order, from weights of the shapes that it expects, finite, and numbers of known names within their ranges; and what it
answers holds numbers of known names alone. A refusal says why in words that hold nothing private, and is logged.
"""

import math
from collections.abc import Callable

import numpy as np

from pipelines.blocks.dp import CLIPPING_NORMS, LEAST_FACTOR
from pipelines.federation.messages import Payload
from pipelines.training.tensors import State

LARGEST = 1e6  # of a weight: far above any that trains, far below what overflows a float32 within a network
ASKED = {  # what a server may say beside weights: kind, and range
    "round": (int, 1, math.inf),
    "local_steps": (int, 1, 10**6),
    "noise_factor": (float, LEAST_FACTOR, 1.0),
    "clipping_norm": (float, *CLIPPING_NORMS),
}
# What a client may say. Of synthetic sets: public sizes and losses. Of noisy steps: what its account, which knows noise
# and rates alone, or the released gradients themselves tell.
TOLD = {
    *("images", "steps", "train_loss", "query_loss", "query_accuracy", "pseudo_labelled"),
    *("epsilon_spent", "epsilon_by_pld", "signal_to_noise", "noise_multiplier", "clipping_norm", "left"),
}


class Refused(Exception):
    """A message that is not of the protocol. The text says why, and holds nothing private."""


class Gate:
    """One run's, at one client.

    Args:
        update: the algorithm's client update, with the client's data bound.
        template: arrays of the names, shapes and kinds that every round's must have.
        rounds: how many there are at most.
        spent: what the client's account came to, of a noisy run.
    """

    def __init__(
        self,
        update: Callable[[Payload], Payload | None],
        template: State,
        rounds: int,
        spent: Callable[[], dict] = dict,
    ):
        self.update, self.template, self.rounds, self.spent, self.last = update, template, rounds, spent, 0

    def answer(self, payload: Payload) -> Payload | None:
        """The client's answer to a round; None where it has left.

        Raises:
            Refused: before anything was computed from the message; or the answer is none that may leave.
        """
        self._check_scalars(payload.scalars)
        check_arrays(payload.arrays, self.template)
        self.last = payload.scalars["round"]
        answer = self.update(payload)
        if answer is not None:
            check_told(answer.scalars)
        return answer

    def end(self) -> dict:
        """What the account came to; no round follows."""
        self.last, spent = self.rounds, self.spent()
        check_told(spent)
        return spent

    def _check_scalars(self, scalars: dict) -> None:
        for name, value in scalars.items():
            if name not in ASKED:
                raise Refused(f"a number named {name!r} is not of the protocol")
            kind, low, high = ASKED[name]
            if type(value) is not kind or not low <= value <= high:
                raise Refused(f"{name!r} must be {kind.__name__} in [{low:g}, {high:g}]")
        number = scalars.get("round")
        if number is None or not self.last < number <= self.rounds:
            raise Refused(f"round {number} does not follow round {self.last} of {self.rounds}")


def check_arrays(arrays: State, template: State) -> None:
    """
    Raises:
        Refused: other names, shapes or kinds than the template's, or values that are not finite or too large.
    """
    if not isinstance(arrays, dict) or set(arrays) != set(template):
        raise Refused("the arrays are not those of this run's network")
    for name, expected in template.items():
        array = arrays[name]
        if not isinstance(array, np.ndarray) or array.dtype != expected.dtype or array.shape != expected.shape:
            raise Refused(f"array {name!r} must be {expected.dtype}, {expected.shape}")
        if not np.isfinite(array).all() or np.abs(array).max(initial=0) > LARGEST:
            raise Refused(f"array {name!r} has values that are not finite, or above {LARGEST:g}")


def check_told(scalars: dict) -> None:
    """
    Raises:
        Refused: a number that no client tells.
    """
    for name, value in scalars.items():
        if name not in TOLD or isinstance(value, bool) or not isinstance(value, int | float):
            raise Refused(f"a number named {name!r} may not leave")
