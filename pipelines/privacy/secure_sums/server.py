"""Runs the server's side of one round. It needs no secret, and learns the sum alone.

A client that answers nothing, or something that does not pass, counts as dropped out. `dropped` says
why. If fewer than the threshold are left, the round ends with a refusal that lists the reasons.

>>> from pipelines.privacy.secure_sums.in_process import example
>>> terms, clients = example({"c0": [1, 2], "c1": [10, 20], "c2": [100, 200]})
>>> server = Server(terms)
>>> while not server.done:
...     replies = {name: clients[name].answer(server.request(name)) for name in server.asked}
...     server.take(replies)
>>> server.total.tolist()
[111, 222]
"""

from collections.abc import Mapping

import numpy as np

from pipelines.privacy.secure_sums.announced import Announced, survivors_content, view_of
from pipelines.privacy.secure_sums.keys import KEY, gives_secret
from pipelines.privacy.secure_sums.messages import (
    Message,
    Places,
    Step,
    array_of,
    message,
    rows,
    step_of,
)
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import SIGNATURE
from pipelines.privacy.secure_sums.sealed_shares import SEALED
from pipelines.privacy.secure_sums.shamir import SHARE
from pipelines.privacy.secure_sums.terms import Terms
from pipelines.privacy.secure_sums.unmasking import unmasked

Arrays = dict[str, np.ndarray]


class Server:
    """Holds the server of one round.

    Args:
        terms: The terms.

    Attributes:
        step: The step that is being asked.
        left: The places of the clients that are asked.
        dropped: Why each client that is no longer asked dropped out, by name.
        total: The sum of the survivors' vectors, int64 [length]; None before the last step.
        survivors: The names of the clients in the sum; empty before step 3 was taken.
    """

    def __init__(self, terms: Terms):
        self.terms = terms
        self.step = Step.KEYS
        self.left: Places = tuple(range(terms.clients))
        self.dropped: dict[str, str] = {}
        self.total: np.ndarray | None = None
        self.survivors: tuple[str, ...] = ()
        # what came in each step, by place
        self._taken: dict[Step, dict[int, Arrays]] = {}
        self._announced: Announced | None = None

    @property
    def done(self) -> bool:
        """Returns whether the sum is there."""
        return self.total is not None

    @property
    def asked(self) -> tuple[str, ...]:
        """Returns the names of the clients that are asked."""
        return tuple(self.terms.roster.names[place] for place in self.left)

    def request(self, name: str) -> Message:
        """Returns the request of this step for a client."""
        receiver = self.terms.roster.position(name)
        arrays: Arrays = {} if self.step == Step.KEYS else {"places": np.array(self.left)}
        if self.step == Step.SHARES:
            arrays = self._announced._asdict()
        elif self.step == Step.MASKED:
            sealed = np.zeros((self.terms.clients, SEALED), np.uint8)
            for sender in self.left:
                sealed[sender] = self._taken[Step.SHARES][sender]["sealed"][receiver]
            arrays["sealed"] = sealed
        elif self.step == Step.UNMASK:
            arrays["signatures"] = self._rows(Step.CONFIRM, "signature", SIGNATURE)
        return message(self.step, self.terms, **arrays)

    def take(self, replies: Mapping[str, Message | Refusal]) -> None:
        """Takes the answers of this step, and goes to the next one.

        Args:
            replies: The answers by name. A client that is missing dropped out. A refusal stands
                for the sentence that a client sent instead.

        Raises:
            Refusal: Too few clients are left, or the shares do not give the sum.
        """
        taken = {}
        for place in self.left:
            name = self.terms.roster.names[place]
            try:
                taken[place] = self._checked(place, replies.get(name))
            except Refusal as refusal:
                self.dropped[name] = f"step {int(self.step)}: {refusal}"
        self._taken[self.step] = taken
        self.left = tuple(taken)
        if len(taken) < self.terms.threshold:
            reasons = "; ".join(f"{name!r}, {why}" for name, why in self.dropped.items())
            raise Refusal(
                f"{len(taken)} of {self.terms.clients} clients are left in step {int(self.step)}, "
                f"and the threshold is {self.terms.threshold}: there is no sum. Dropped out: {reasons}"
            )
        self._go_on()

    def _go_on(self) -> None:
        """Goes to the next step, or makes the sum after the last one."""
        if self.step == Step.KEYS:
            self._announced = Announced(
                np.array(self.left),
                self._rows(Step.KEYS, "channel_key", KEY),
                self._rows(Step.KEYS, "mask_key", KEY),
                self._rows(Step.KEYS, "commitment", KEY),
                self._rows(Step.KEYS, "signature", SIGNATURE),
            )
        elif self.step == Step.MASKED:
            self.survivors = self.asked
        elif self.step == Step.UNMASK:
            self.total = unmasked(
                self.terms,
                self._announced,
                tuple(self._taken[Step.SHARES]),
                {place: taken["masked"] for place, taken in self._taken[Step.MASKED].items()},
                {place: taken["shares"] for place, taken in self._taken[Step.UNMASK].items()},
            )
            return
        self.step = Step(self.step + 1)

    def _checked(self, place: int, reply: Message | Refusal | None) -> Arrays:
        """Returns the arrays of a client's answer.

        Raises:
            Refusal: There is none, or it does not pass.
        """
        if reply is None:
            raise Refusal("it did not answer.")
        if isinstance(reply, Refusal):
            raise reply
        if step_of(reply, self.terms) != self.step:
            raise Refusal("its answer is of another step.")
        count = self.terms.clients
        if self.step == Step.KEYS:
            return self._checked_keys(place, reply)
        if self.step == Step.SHARES:
            return {"sealed": array_of(reply, "sealed", (count, SEALED), np.uint8)}
        if self.step == Step.MASKED:
            return {"masked": array_of(reply, "masked", (self.terms.length,), np.uint64)}
        if self.step == Step.CONFIRM:
            return self._checked_signature(place, reply)
        return {"shares": array_of(reply, "shares", (count, SHARE), np.uint8)}

    def _checked_keys(self, place: int, reply: Message) -> Arrays:
        """Returns the keys of a client, which it signed."""
        arrays = {}
        for name in ("channel_key", "mask_key", "commitment"):
            arrays[name] = array_of(reply, name, (KEY,), np.uint8)
        arrays["signature"] = array_of(reply, "signature", (SIGNATURE,), np.uint8)
        alone = []
        for array in arrays.values():
            alone.append(rows(self.terms.clients, len(array), {place: array.tobytes()}))
        if not Announced(np.array([place]), *alone).is_signed(place, self.terms):
            raise Refusal("its keys do not have its signature.")
        if not all(gives_secret(arrays[name].tobytes()) for name in ("channel_key", "mask_key")):
            raise Refusal("a public key of it gives no shared secret: it is a forged one.")
        return arrays

    def _checked_signature(self, place: int, reply: Message) -> Arrays:
        """Returns a client's signature of the survivors."""
        signature = array_of(reply, "signature", (SIGNATURE,), np.uint8)
        view = view_of(self.terms, self._announced, tuple(self._taken[Step.SHARES]))
        content = survivors_content(self.terms, view, tuple(self._taken[Step.MASKED]))
        name = self.terms.roster.names[place]
        if not self.terms.roster.has_signed(name, content, signature.tobytes()):
            raise Refusal("its signature is not that of the survivors.")
        return {"signature": signature}

    def _rows(self, step: Step, name: str, width: int) -> np.ndarray:
        """Returns an array of each answer to a step as rows, uint8 [K, width]."""
        content = {place: taken[name].tobytes() for place, taken in self._taken[step].items()}
        return rows(self.terms.clients, width, content)
