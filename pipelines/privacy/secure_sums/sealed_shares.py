"""Seals the two shares that one client has for another, on their way through the server.

The cipher is ChaCha20-Poly1305 of the package `cryptography`, under a key of the two clients' key
agreement. Sender, receiver and terms enter the key. So the server can neither read nor change
shares, nor send them to somebody else or in another round.

The first share is of the sender's private mask key, the second of its self-mask seed. A client that
hands out both of one sender lets the server see that sender's vector (client_steps.py).
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from pipelines.privacy.secure_sums.keys import shared
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.shamir import SHARE

NONCE = 12
TAG = 16
# bytes of both shares, sealed
SEALED = NONCE + 2 * SHARE + TAG


def seal(
    shares: bytes, *, private: bytes, public: bytes, sender: str, receiver: str, terms: bytes
) -> bytes:
    """Returns both shares sealed, SEALED bytes.

    Args:
        shares: The share of the mask key, then that of the seed.
        private: The sender's private channel key.
        public: The receiver's public channel key.
        sender, receiver: Their names.
        terms: The digest of the round's terms.

    Raises:
        Refusal: The receiver's key is a forged one.
    """
    nonce = os.urandom(NONCE)
    return nonce + _cipher(private, public, sender, receiver, terms).encrypt(nonce, shares, terms)


def unseal(
    sealed: bytes, *, private: bytes, public: bytes, sender: str, receiver: str, terms: bytes
) -> bytes:
    """Returns both shares: that of the mask key, then that of the seed.

    Args:
        sealed: What `seal` returned.
        private: The receiver's private channel key.
        public: The sender's public channel key.
        sender, receiver: Their names.
        terms: The digest of the round's terms.

    Raises:
        Refusal: They were made or changed by somebody else, or are none.
    """
    nonce = sealed[:NONCE]
    cipher = _cipher(private, public, sender, receiver, terms)
    try:
        shares = cipher.decrypt(nonce, sealed[NONCE:], terms)
    # what is too short for a nonce is a ValueError
    except (InvalidTag, ValueError):
        shares = b""
    if len(shares) != 2 * SHARE:
        raise Refusal(
            f"The shares of {sender!r} for {receiver!r} do not open: that client or the server "
            "sent garbage. Begin a new round without the culprit."
        )
    return shares


def _cipher(
    private: bytes, public: bytes, sender: str, receiver: str, terms: bytes
) -> ChaCha20Poly1305:
    """Returns the cipher of one direction between two clients."""
    direction = (sender.encode(), receiver.encode())
    return ChaCha20Poly1305(shared(private, public, *direction, terms=terms, purpose="shares"))
