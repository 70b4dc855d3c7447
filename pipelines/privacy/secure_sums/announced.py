"""Holds the keys that clients announced in a round, and what they signed about them.

A server that swapped a client's key for its own would know that client's masks. So each client signs
its keys, and each other client checks the signature with the roster. The signed content names the
terms, so that keys of another round do not pass.

`view` is a hash of all that a client took from the server up to the shares. The clients sign it with
the set of survivors: who was shown other keys or other senders than the rest signs something else.
"""

from typing import NamedTuple

import numpy as np

from pipelines.privacy.secure_sums.encoding import digest, encoded
from pipelines.privacy.secure_sums.keys import KEY
from pipelines.privacy.secure_sums.messages import Message, Places, array_of, places_of
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import SIGNATURE
from pipelines.privacy.secure_sums.terms import Terms


class Announced(NamedTuple):
    """Holds what clients announced. Arrays have a row for each place of the roster.

    Attributes:
        places: Who announced keys, int64.
        channel_keys: Public keys that seal shares, uint8 [K, 32].
        mask_keys: Public keys of the pair masks, uint8 [K, 32].
        commitments: To the seeds of the self masks, uint8 [K, 32].
        signatures: Of the three, uint8 [K, 64].
    """

    places: np.ndarray
    channel_keys: np.ndarray
    mask_keys: np.ndarray
    commitments: np.ndarray
    signatures: np.ndarray

    def is_signed(self, place: int, terms: Terms) -> bool:
        """Returns whether a client signed what stands in its row."""
        name = terms.roster.names[place]
        content = keys_content(
            terms,
            name,
            self.channel_keys[place].tobytes(),
            self.mask_keys[place].tobytes(),
            self.commitments[place].tobytes(),
        )
        return terms.roster.has_signed(name, content, self.signatures[place].tobytes())


def keys_content(
    terms: Terms, name: str, channel_key: bytes, mask_key: bytes, commitment: bytes
) -> bytes:
    """Returns what a client signs about its keys of a round.

    Args:
        terms: The terms.
        name: The client's.
        channel_key: The public key for sealed shares.
        mask_key: The public key for masks.
        commitment: What it publishes of its seed.
    """
    return encoded("keys", terms.digest, name, channel_key, mask_key, commitment)


def survivors_content(terms: Terms, view: bytes, survivors: Places) -> bytes:
    """Returns what a client signs about the set of survivors.

    Args:
        terms: The terms.
        view: The hash of what the client saw before.
        survivors: The places of those whose masked vectors the server says to have.
    """
    return encoded("survivors", terms.digest, view, *survivors)


def view_of(terms: Terms, announced: Announced, sharers: Places) -> bytes:
    """Returns a hash of what a client saw: all keys, and who sent shares.

    Args:
        terms: The terms.
        announced: All keys.
        sharers: The places of those who sent shares.
    """
    arrays = [array.tobytes() for array in announced]
    return digest("view", terms.digest, *arrays, "sharers", *sharers)


def checked(received: Message, terms: Terms) -> Announced:
    """Returns the keys that a server forwards.

    Raises:
        Refusal: There are too few, a signature does not fit, or two clients have one key.
    """
    count = terms.clients
    places = places_of(received, terms, within=tuple(range(count)), least=terms.threshold)
    announced = Announced(
        received.arrays["places"],
        array_of(received, "channel_keys", (count, KEY), np.uint8),
        array_of(received, "mask_keys", (count, KEY), np.uint8),
        array_of(received, "commitments", (count, KEY), np.uint8),
        array_of(received, "signatures", (count, SIGNATURE), np.uint8),
    )
    for place in places:
        if not announced.is_signed(place, terms):
            raise Refusal(
                f"The keys of {terms.roster.names[place]!r} are not signed by that client for this "
                "round: the server or another client swapped them, or they are stale."
            )
    owners = {}
    for place in places:
        name = terms.roster.names[place]
        for key in (announced.channel_keys[place].tobytes(), announced.mask_keys[place].tobytes()):
            if key in owners:
                raise Refusal(
                    f"A public key of {name!r} is one of {owners[key]!r}, too: one of them copied it."
                )
            owners[key] = name
    return announced
