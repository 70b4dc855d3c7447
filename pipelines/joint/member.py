"""Does a client's part of a joint release between machines, whatever carries the messages.

Released: the client's sums over its records with its share of the noise, under the masks of a secure
sum. **Sensitivity** and **noise** are those of the generator's plan (`synthesis/joint_*.py`), by
the client's own parameters. **Neighbours**: one record of this client is added or removed.
**Accounted**: the client's ledger enters the whole release before the first message of a sum leaves
(`begin`). Whatever the server does then, nothing beside it leaves.

The server may be dishonest. It chooses the name of a release, says the totals, and may send anything.
A wrong total spoils the generator, and costs no privacy: a later sum has sensitivity 1, whatever totals
were told. Vectors are drawn once for each sum. A client process that dies knows nothing of its release any
more, so that it refuses all further steps, and another attempt is charged.
"""

import os
import re
import secrets
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from pipelines import releases
from pipelines.config import Params
from pipelines.datasets import shards
from pipelines.errors import UserError
from pipelines.federation.network.client import LOCAL
from pipelines.federation.network.gate import LONGEST, Refused, plain
from pipelines.joint.joint_run import JointRun
from pipelines.privacy.secure_sums import signing_key
from pipelines.privacy.secure_sums.client import Client
from pipelines.privacy.secure_sums.journal import Volatile
from pipelines.privacy.secure_sums.messages import Message
from pipelines.privacy.secure_sums.noise_shares import SharePlan, noisy
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.seal import Seal, chained, roster_of
from pipelines.synthesis import joint_apart
from pipelines.synthesis.joint_plan import Course

# as `releases.closed_by_public_name` makes them
PUBLIC_NAME = re.compile(r"[0-9a-f]{32}")


class Member:
    """Holds one client's part of one joint release. Nothing is spent before `begin`.

    Args:
        params: The client's own parameters.
        run: The release that the server named.
        client: The client's name.

    Raises:
        UserError: These parameters, the client's key, its records or its ledger do not allow it.
    """

    def __init__(self, params: Params, run: JointRun, client: str):
        self.planned = run.planned(params)
        if LOCAL not in os.environ and self.planned.statement.guarantee != "formal":
            raise UserError(
                "This release would have no formal guarantee: it is made with nobody else."
            )
        self.client = client
        self.source = self.planned.source(client)
        self.roster = roster_of(params)
        self.records = shards.read(run.dataset, client, "train", params.profiles[run.dataset])
        self.ledger = releases.ledger_of(params, run.dataset, client)
        # a new word each time: what an earlier attempt sent cannot be taken back
        self.attempt = secrets.token_hex(16)
        self.entry = joint_apart.entry(self.planned, client, self.records, self.attempt)
        try:
            self.identity = signing_key.read(client)
            place = self.roster.position(client)
        except Refusal as refusal:
            raise UserError(str(refusal)) from None
        if self.roster.keys[place] != self.identity.public:
            raise UserError(
                f"The roster has another key for {client} than {signing_key.path_of(client)}."
            )
        with releases.as_user_error():
            self.ledger.check(self.entry)
            releases.check_place(joint_apart.place(self.planned, client, self.entry))
        self.name: str | None = None
        self.public_name = ""
        self.released: list[np.ndarray] = []
        # how many clients are in each sum
        self._summands: list[int] = []
        # a hash of the settings and of what was released
        self._totals = run.opening(params)
        self._seal: Seal | None = None
        self.member = self.planned.member(client, self.records)
        # what makes its sums, from `begin` to `finish`
        self._parts = ExitStack()
        self._round: Client | None = None

    def begin(self, name: str) -> str:
        """Enters the release in the client's ledger, as one that was made.

        Args:
            name: The release's name in the sums, of the server's choice.

        Returns:
            The public name of the release in this ledger, for the cards.

        Raises:
            Refused: The release has begun, or its name is none.
            UserError: The ledger refuses. Then nothing was spent.
        """
        if self.name is not None:
            raise Refused("this release has begun: another one needs a job of its own")
        if not isinstance(name, str) or not name or len(name) > LONGEST:
            raise Refused("a release needs a name")
        # a start that fails costs nothing, and a ledger that refuses leaves nothing open
        with ExitStack() as parts:
            part = self.planned.module.contribution(self.member, self.planned.plan)
            self._part = parts.enter_context(part)
            releases.enter_as_made(self.ledger, self.entry)
            self._parts = parts.pop_all()
        self.name = name
        planned = self.planned
        self.public_name = releases.public_name(
            planned.params, planned.dataset, self.client, self.entry.fingerprint
        )
        return self.public_name

    def answer(self, number: int, arrays: dict, scalars: dict) -> Message:
        """Answers one step of one sum.

        Args:
            number: Which sum of the release it is, from 0 on.
            arrays: Of the server's message.
            scalars: Of the server's message.

        Raises:
            Refused: The step is not the next one, or fails a check of the protocol.
        """
        if self.name is None or number != len(self.released):
            raise Refused("this step is of no sum that this client makes now")
        try:
            if self._round is None:
                self._round = self._new_round(number)
            return self._round.answer(message_of(arrays, scalars))
        except Refusal as refusal:
            raise Refused(str(refusal)) from None

    def take(self, number: int, total: np.ndarray, summands: int) -> None:
        """Takes the total of a sum, which the server saw.

        Args:
            number: Which sum it is.
            total: int64 of the sum's shape, in lattice steps.
            summands: How many clients' vectors are in it.

        Raises:
            Refused: This client has not come to the end of its round, or the total is none.
        """
        has_ended = self._round is not None and self._round.done
        if not has_ended or number != len(self.released):
            raise Refused("this total is of no sum that this client has made")
        shape = self._course.shapes[number]
        usual = isinstance(total, np.ndarray) and total.dtype == np.int64 and total.shape == shape
        if not usual:
            raise Refused(f"a total must be int64, {shape}")
        if type(summands) is not int or not self._fewest <= summands <= len(self.roster):
            raise Refused("so many clients cannot be in a sum")
        self._round = None
        self._totals = chained(self._totals, number, total, summands)
        self._summands.append(summands)
        self.released.append(self.planned.plan.of_all_clients(total, summands))

    def sign(self, together: dict[str, str]) -> str:
        """Signs what was released, and under which name each ledger knows it. Once.

        Args:
            together: The public name of the release in the ledger of each client that entered it.

        Returns:
            The signature, in hexadecimal digits.

        Raises:
            Refused: A sum is missing, the names are not those of the roster, or others were signed.
        """
        if self.name is None or len(self.released) < len(self._course.shapes):
            raise Refused("a sum is missing")
        usual = isinstance(together, dict) and set(together) <= set(self.roster.names)
        if (
            not usual
            or len(together) < self._fewest
            or together.get(self.client) != self.public_name
        ):
            raise Refused("the names of the release are not those of this roster")
        names = {partner: checked_name(partner, together[partner]) for partner in sorted(together)}
        seal = Seal(self.name, self._totals, names)
        if self._seal not in (None, seal):
            raise Refused("this client has signed other names")
        self._seal = seal
        return self.identity.sign(seal.content).hex()

    def finish(self, signatures: dict[str, str]) -> None:
        """Makes the generator's state of all totals, and stores it beside the ledger.

        Args:
            signatures: By client, of those that are left: what `sign` returned there.

        Raises:
            Refused: This client has signed nothing, or a partner has signed something else.
        """
        if self._seal is None:
            raise Refused("a sum is missing")
        usual = isinstance(signatures, dict) and set(signatures) <= set(self._seal.together)
        if not usual or len(signatures) < self._fewest:
            raise Refused("too few clients have signed the release")
        for partner, signature in signatures.items():
            if not self._seal.is_signed(self.roster, partner, signature):
                raise Refused(
                    f"{partner} has signed another release: the server told it other totals or "
                    "names"
                )
        self._parts.close()
        planned = self.planned
        state = planned.module.joint_state(planned.plan, self.released, self._summands, self.member)
        among = {
            "together": dict(self._seal.together),
            "sealed": self._seal.facts(signatures),
            "attempt": self.attempt,
        }
        joint_apart.save(planned, self.client, self.entry, state, among)

    @property
    def _fewest(self) -> int:
        """Returns how many clients take part at least."""
        return self.planned.plan.shares.threshold

    @property
    def _course(self) -> Course:
        """Returns the sums that there are, by what was released so far."""
        return self.planned.module.course(self.planned.plan, self.released)

    def _new_round(self, number: int) -> Client:
        """Returns this client in the round of a sum, for which it has drawn nothing yet."""
        course = self._course
        length = int(np.prod(course.shapes[number]))
        return Client(
            name=self.client,
            identity=self.identity,
            terms=course.shares.terms(self.name, number, self.roster, length, self._totals),
            vector=partial(self._vector, course.shares, number),
            journal=Volatile(),
        )

    def _vector(self, shares: SharePlan, number: int) -> np.ndarray:
        """Returns this client's sum over its records with its share of the noise, int64 [n]."""
        return noisy(self._part(self.released).ravel(), shares, number, noise=self.source)


def message_of(arrays: Any, scalars: Any) -> Message:
    """Returns a message of another member, whose parts have the kinds that the protocol has.

    Raises:
        Refused: They have not.
    """
    usual = isinstance(arrays, dict) and isinstance(scalars, dict)
    usual = usual and all(map(_is_integers, arrays.values()))
    usual = usual and all(type(value) in (int, str) for value in scalars.values())
    if not usual:
        raise Refused("the message is none of a secure sum")
    return Message(arrays, scalars)


def _is_integers(array: object) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "iu"


def checked_name(client: str, name: object) -> str:
    """Returns the public name of a release in a client's ledger, which cards show.

    Raises:
        Refused: It is none.
    """
    if not isinstance(name, str) or not PUBLIC_NAME.fullmatch(name):
        raise Refused(f"the name of the release in the ledger of {plain(client)} is none")
    return name
