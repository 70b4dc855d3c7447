"""Seals a joint release: every client signs the same totals, and the same names in the ledgers.

The server tells clients the totals and each other's names, and may be dishonest. A hash of the
settings and of the earlier totals stands in the terms of each sum. So clients that have other
settings, or were told other totals, give no sum. After the last sum each client signs what it was
told. Nobody stores a generator before all have signed alike.

>>> one = chained(b"", 0, np.array([1, 2]), 3)
>>> one == chained(b"", 0, np.array([1, 2]), 3), one == chained(b"", 0, np.array([2, 1]), 3)
(True, False)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipelines.config import Params
from pipelines.errors import UserError
from pipelines.privacy.secure_sums.encoding import digest
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import Roster

PURPOSE = "fedlens joint release, sealed"
# of Ed25519, in hexadecimal digits
SIGNATURE = re.compile(r"[0-9a-f]{128}")


def chained(before: bytes, number: int, total: np.ndarray, summands: int) -> bytes:
    """Returns a hash of the totals up to this one, 32 bytes.

    Args:
        before: The hash of the earlier ones; `JointRun.opening` before the first.
        number: Which sum of the release it is.
        total: Its total, int64 in lattice steps.
        summands: How many clients' vectors are in it.
    """
    return digest(before, number, summands, total.astype("<i8").tobytes())


@dataclass(frozen=True)
class Seal:
    """Holds what each client of a release signs.

    Attributes:
        release: The name of the release in its sums.
        totals: The hash of the settings and of all totals, from `chained`.
        together: The public name of the release in the ledger of each client that entered it.
    """

    release: str
    totals: bytes
    together: Mapping[str, str]

    @property
    def content(self) -> bytes:
        """Returns the bytes that are signed."""
        names = []
        for client, name in sorted(self.together.items()):
            names += [client, name]
        return digest(PURPOSE, self.release, self.totals, *names)

    def is_signed(self, roster: Roster, client: str, signature: object) -> bool:
        """Returns whether what came as a client's signature is one of this seal.

        Args:
            roster: The clients' keys.
            client: The client.
            signature: What came: a text of hexadecimal digits, or anything else.
        """
        if not isinstance(signature, str) or not SIGNATURE.fullmatch(signature):
            return False
        return roster.has_signed(client, self.content, bytes.fromhex(signature))

    def facts(self, signatures: Mapping[str, str]) -> dict:
        """Returns what a card says of the seal, for whoever has the roster.

        Args:
            signatures: By client, in hexadecimal digits.
        """
        return {
            "release": self.release,
            "totals": self.totals.hex(),
            "signatures": dict(signatures),
        }


def signed_by(card: Mapping, roster: Roster) -> tuple[str, ...]:
    """Returns the clients whose signature on a card is that of its release.

    Args:
        card: The content of a card.json.
        roster: The clients' keys.

    Raises:
        UserError: The card is of no release between machines, or damaged, or its seal is of another
            release.
    """
    try:
        sealed = card["sealed"]
        seal = Seal(sealed["release"], bytes.fromhex(sealed["totals"]), card["together"])
        is_of_card = card["release"] in seal.together.values()
        signers = []
        for name, signature in sealed["signatures"].items():
            if name in roster.names and seal.is_signed(roster, name, signature):
                signers.append(name)
    except KeyError as error:
        raise UserError(f"The card lacks {error}: no clients have signed its release.") from None
    except (AttributeError, TypeError, ValueError):
        raise UserError("The card's 'sealed' is none that a joint release writes.") from None
    if not is_of_card:
        raise UserError("The card's 'sealed' is of another release than the card.")
    return tuple(signers)


def roster_of(params: Params) -> Roster:
    """Returns the roster that all sides agreed on, from one side's parameters.

    Raises:
        UserError: A key is none, or two clients have the same.
    """
    keys = {name: bytes.fromhex(key) for name, key in params.federation.roster.items()}
    try:
        return Roster(keys)
    except Refusal as refusal:
        raise UserError(f"{refusal} (federation.roster, params.yaml)") from None
