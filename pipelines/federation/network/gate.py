"""Checks what a client takes from a server and what it answers, whatever carries the messages.

The server may be dishonest: it may send anything, at any time, as often as it likes. A client
answers rounds in their order. It takes finite weights of the shapes that it expects, and scalars of
known names within their ranges. Its answer holds only the scalars that its algorithm declares. A
refusal says why in words that hold nothing private, and is logged.

A client may be dishonest, too. The server takes finite arrays of the names, shapes and kinds that
it sent. It also takes exactly the scalars that a run's clients send, each within the range that the
run's own settings allow.
"""

import json
import math
from collections.abc import Callable, Mapping

import numpy as np

from pipelines.config.dp import LEAST_FACTOR
from pipelines.config.values import CLIPPING_NORMS
from pipelines.federation.core.messages import (
    LARGEST_COUNT,
    LARGEST_WEIGHT,
    Bounds,
    Payload,
    ScalarRange,
    any_bounds,
)
from pipelines.federation.dp.account import ACCOUNT_TELLS
from pipelines.training.tensors import State

# The most characters of a text that another member sends.
LONGEST = 500
# The most characters of a card.
LONGEST_CARD = 50_000
# The instructions that a server may send beside weights.
INSTRUCTIONS: Bounds = {
    "round": (int, 1, math.inf),
    "local_steps": (int, 1, 10**6),
    "noise_factor": (float, LEAST_FACTOR, 1.0),
    "clipping_norm": (float, *CLIPPING_NORMS),
    "planned_steps": (int, 1, 10**6),
}
# The figures of a client's account after the run. It has no step if its budget buys none.
SPENT: Bounds = {
    "steps": (int, 0, LARGEST_COUNT),
    **any_bounds({name: ACCOUNT_TELLS[name] for name in ("epsilon_spent", "epsilon_by_pld")}),
}


class Refused(Exception):
    """Says why a message is not of the protocol, in words that hold nothing private."""


class Gate:
    """Guards one run at one client.

    Args:
        update: The algorithm's client update, with the client's state bound.
        template: {name: array} of the names, shapes and kinds that every round's arrays must have.
        rounds: The largest number of rounds.
        tells: The scalars that the algorithm declares; no other may leave.
        spent: Returns what the client's account came to, for a noisy run.
    """

    def __init__(
        self,
        update: Callable[[Payload], Payload | None],
        template: State,
        rounds: int,
        tells: Mapping[str, ScalarRange] | None = None,
        spent: Callable[[], dict] = dict,
    ):
        self.update = update
        self.template = template
        self.rounds = rounds
        self.bounds = any_bounds(tells or {})
        self.spent = spent
        self.last = 0

    def answer(self, payload: Payload) -> Payload | None:
        """Returns the client's answer to a round; None if the client has left.

        Raises:
            Refused: The message is not of the protocol, and nothing was computed from it. Or the
                answer may not leave.
        """
        self._check_instructions(payload.scalars)
        check_arrays(payload.arrays, self.template)
        self.last = payload.scalars["round"]
        answer = self.update(payload)
        if answer is not None:
            check_scalars(answer.scalars, self.bounds)
        return answer

    def end(self) -> dict:
        """Returns what the account came to; no round follows."""
        self.last = self.rounds
        spent = self.spent()
        check_scalars(spent, SPENT)
        return spent

    def _check_instructions(self, scalars: dict) -> None:
        for name, value in scalars.items():
            if name not in INSTRUCTIONS:
                raise Refused(f"a number named {plain(repr(name))} is not of the protocol")
            kind, low, high = INSTRUCTIONS[name]
            if type(value) is not kind or not low <= value <= high:
                raise Refused(f"{name!r} must be {kind.__name__} in [{low:g}, {high:g}]")
        number = scalars.get("round")
        if number is None or not self.last < number <= self.rounds:
            raise Refused(f"round {number} does not follow round {self.last} of {self.rounds}")


def check_arrays(arrays: State, template: State) -> None:
    """Checks arrays against a template.

    Raises:
        Refused: Names, shapes or kinds are not the template's, or values are not finite or too
            large.
    """
    if not isinstance(arrays, dict) or set(arrays) != set(template):
        raise Refused("the arrays are not those of this run's network")
    for name, expected in template.items():
        array = arrays[name]
        if (
            not isinstance(array, np.ndarray)
            or array.dtype != expected.dtype
            or array.shape != expected.shape
        ):
            raise Refused(f"array {name!r} must be {expected.dtype}, {expected.shape}")
        if not np.isfinite(array).all() or np.abs(array).max(initial=0) > LARGEST_WEIGHT:
            raise Refused(
                f"array {name!r} has values that are not finite, or above {LARGEST_WEIGHT:g}"
            )


def check_scalars(scalars: dict, bounds: Bounds) -> None:
    """Checks scalars against the ranges of those that may pass.

    Raises:
        Refused: There is a number that no client sends, or one outside its range. NaN is outside
            each range.
    """
    if not isinstance(scalars, dict):
        raise Refused("its numbers are no mapping")
    for name, value in scalars.items():
        if name not in bounds:
            raise Refused(f"a number named {plain(repr(name))} may not leave")
        kind, low, high = bounds[name]
        usual = isinstance(value, int | float) and not isinstance(value, bool)
        if not usual or (kind is int and not isinstance(value, int)) or not low <= value <= high:
            # The client sends the server its reason. It leaves the value out, which may not leave.
            raise Refused(
                f"a number named {name!r} may not leave: it must be {kind.__name__} in "
                f"[{low:g}, {high:g}]"
            )


def check_all_scalars(scalars: dict, bounds: Bounds) -> None:
    """Checks that all scalars are there, each within its range.

    Raises:
        Refused: As `check_scalars`, or a number is missing.
    """
    check_scalars(scalars, bounds)
    missing = sorted(set(bounds) - set(scalars))
    if missing:
        raise Refused(f"its answer lacks the numbers {', '.join(missing)}")


def check_set(content: dict, shape: tuple[int, ...], classes: int) -> None:
    """Checks a client's exported set, which others will see.

    Args:
        content: {"images": uint8 [n, H, W, C], "labels": int64 [n]}.
        shape: [n, H, W, C], the shape of all its images together.
        classes: The number of classes of the data set.

    Raises:
        Refused: It is no set of this run.
    """
    arrays = []
    if isinstance(content, dict):
        arrays = [content.get("images"), content.get("labels")]
    kinds = [(array.dtype, array.shape) for array in arrays if isinstance(array, np.ndarray)]
    if kinds != [(np.dtype(np.uint8), shape), (np.dtype(np.int64), shape[:1])]:
        raise Refused(f"its set must be uint8 images of {shape}, and their labels")
    labels = arrays[1]
    if labels.min() < 0 or labels.max() >= classes:
        raise Refused(f"the labels of its set must be in [0, {classes})")


def check_card(text: object) -> dict:
    """Returns the card that a client sent with its set.

    Args:
        text: The text of card.json.

    Raises:
        Refused: It is too long, or no card: it names no release, epsilon or guarantee.
    """
    if not isinstance(text, str) or len(text) > LONGEST_CARD:
        raise Refused(f"its card must be a text of at most {LONGEST_CARD} characters")
    try:
        card = json.loads(text)
        privacy = card["privacy"]
        usual = float(privacy["epsilon"]) > 0 and isinstance(privacy["guarantee"], str)
        usual = usual and isinstance(card["release"], str)
    except (ValueError, KeyError, TypeError, RecursionError):
        usual = False
    if not usual:
        raise Refused("its card must name its release, epsilon and guarantee")
    return card


def plain(text: str) -> str:
    r"""Returns another member's text as one line for logs and terminals.

    The line has printable characters alone, and no more than LONGEST and two dots.

    >>> plain("c0\tis ready\n")
    'c0 is ready '
    """
    shortened = text if len(text) <= LONGEST else f"{text[:LONGEST]}.."
    return "".join(character if character.isprintable() else " " for character in shortened)
