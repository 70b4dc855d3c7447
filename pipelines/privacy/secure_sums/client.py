"""Holds one client of one round: it answers each step once, in order, and keeps a journal."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from pipelines.privacy.secure_sums.client_steps import ANSWERS, Member
from pipelines.privacy.secure_sums.journal import Journal
from pipelines.privacy.secure_sums.memory import Memory
from pipelines.privacy.secure_sums.messages import Message, Step, message, step_of
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import Identity
from pipelines.privacy.secure_sums.terms import Terms


class Client:
    """Answers the requests of one round. Its text shows its name and its last step.

    A client that was killed is made anew, with the same journal: it goes on where it was.

    Args:
        name: Its name in the roster.
        identity: Its key for signatures.
        terms: The terms that it agreed to, from its own configuration.
        vector: Draws the noisy vector, int64 [length]. The quantity, its sensitivity and its
            accounting are the caller's, whose ledger enters the release before.
        journal: Where it keeps its steps.

    Raises:
        Refusal: The roster has another key for this name, or the journal does not let it go on.
    """

    def __init__(
        self,
        *,
        name: str,
        identity: Identity,
        terms: Terms,
        vector: Callable[[], np.ndarray],
        journal: Journal,
    ):
        self.member = Member(name, identity, terms, vector)
        if terms.roster.keys[self.member.place] != identity.public:
            raise Refusal(f"The roster has another key for {name!r} than this client's.")
        self._journal = journal
        self._memory = journal.load(terms)

    def __repr__(self) -> str:
        return f"Client(name={self.member.name!r}, step={self._memory.step})"

    def answer(self, request: Message) -> Message:
        """Returns the answer to a request; the same one where the same request comes again.

        Args:
            request: A message of the server (messages.py).

        Raises:
            Refusal: The request is stale, out of order, another one for a step that was answered,
                or it fails a check. Nothing was answered, and the memory is as before.
        """
        terms = self.member.terms
        step = step_of(request, terms)
        done = self._memory.step
        if step == done and request.digest == self._memory.request:
            return self._memory.reply
        if step <= done:
            raise Refusal(
                f"Step {int(step)} of round {terms.round} was answered. It is answered once: a "
                "second set of clients could show single vectors."
            )
        if step != done + 1:
            raise Refusal(f"Step {int(step)} does not follow step {done} of round {terms.round}.")
        arrays, memory = self._work(step)(self.member, self._memory, request)
        reply = message(step, terms, **arrays)
        memory = replace(memory, step=int(step), request=request.digest, reply=reply)
        # nothing leaves before it is on the disk
        self._journal.save(terms, memory)
        self._memory = memory
        return reply

    @property
    def done(self) -> bool:
        """Returns whether the last step was answered, or the round was given up."""
        return self._memory.step == Step.UNMASK

    def leave(self) -> None:
        """Ends the round at this client: keys and shares are removed, and no step is answered more.

        Call it where a round was given up. Its release stays claimed if a vector was masked.
        """
        memory = Memory(step=int(Step.UNMASK))
        self._journal.save(self.member.terms, memory)
        self._memory = memory

    def _work(self, step: Step) -> Callable:
        """Returns the function that answers a step."""
        if step == Step.MASKED:
            return partial(ANSWERS[step], claim=self._journal.claim)
        return ANSWERS[step]
