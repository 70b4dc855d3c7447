"""Makes masks: streams of ChaCha20 (RFC 8439), read as integers modulo 2^64.

A client u hides its vector x_u as (Bonawitz et al. 2017, section 4)

    y_u = x_u + self mask(b_u) + sum over v > u of pair mask(u, v) - sum over v < u of the same

modulo 2^64, over the clients v that shared their keys. Pair masks cancel in the sum. Self masks are
taken off by those seeds b_u that the clients reveal together.

Each key serves one stream, so the stream's nonce is 0. Arithmetic in uint64 wraps, and the sum of
int64 vectors is exact where it lies in 64 bits (terms.py, bound).
"""

from collections.abc import Iterable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from pipelines.privacy.secure_sums.keys import derived, shared

# bytes of an integer
WORD = 8
# ChaCha20's counter and nonce
START = bytes(16)


def stream(key: bytes, length: int) -> np.ndarray:
    """Returns the first integers of a key's stream, uint64 [length].

    Args:
        key: 32 bytes, which serve no other stream.
        length: How many integers.
    """
    cipher = Cipher(algorithms.ChaCha20(key, START), mode=None).encryptor()
    return np.frombuffer(cipher.update(bytes(WORD * length)), "<u8").astype(np.uint64)


def self_mask(seed: bytes, length: int, *, terms: bytes) -> np.ndarray:
    """Returns the mask that a client's own seed gives, uint64 [length].

    Args:
        seed: b_u, 32 bytes of entropy.
        length: How many integers.
        terms: The digest of the round's terms.
    """
    return stream(derived(seed, terms=terms, purpose="self mask"), length)


def commitment(seed: bytes, *, terms: bytes) -> bytes:
    """Returns what a client publishes of its seed, 32 bytes.

    It binds the client to the seed, and tells nothing of the self mask: both are outputs of HKDF
    under different purposes.
    """
    return derived(seed, terms=terms, purpose="commitment to a seed")


def pair_mask(
    private: bytes, public: bytes, places: tuple[int, int], length: int, *, terms: bytes
) -> np.ndarray:
    """Returns the mask that two clients share, uint64 [length].

    Both places enter it. So masks that a client shares with two others do not cancel, even if one of
    these announced the other's key as its own.

    Args:
        private: The mask key of one of them.
        public: The public mask key of the other.
        places: Their places in the roster, in any order.
        length: How many integers.
        terms: The digest of the round's terms.

    Raises:
        Refusal: The public key is a forged one.
    """
    key = shared(private, public, *sorted(places), terms=terms, purpose="pair mask")
    return stream(key, length)


def add_pair_masks(
    total: np.ndarray,
    private: bytes,
    own: int,
    others: Iterable[tuple[int, bytes]],
    *,
    terms: bytes,
) -> None:
    """Adds the pair masks of a client to a vector, in place.

    Args:
        total: uint64 [length].
        private: The client's mask key.
        own: The client's place in the roster.
        others: Place and public mask key of each other client.
        terms: The digest of the round's terms.

    Raises:
        Refusal: A public key is a forged one.
    """
    for place, public in others:
        mask = pair_mask(private, public, (own, place), len(total), terms=terms)
        if place > own:
            total += mask
        else:
            total -= mask
