"""Cuts a secret into shares, of which a threshold gives the secret and fewer tell nothing.

It is Shamir's scheme (1979) over the integers modulo the prime 2^256 + 297. A secret is 32 bytes.
It is the value at 0 of a random polynomial with threshold - 1 further coefficients. The share of
place i is the value at i + 1, 33 bytes. The package `cryptography` has no such scheme.

>>> secret = bytes(range(32))
>>> shares = split(secret, threshold=3, count=5)
>>> joined({4: shares[4], 0: shares[0], 2: shares[2]}, threshold=3) == secret
True
"""

import secrets
from collections.abc import Mapping

from pipelines.privacy.secure_sums.refusals import Refusal

# the least prime above 2^256; a test proves that it is one
PRIME = 2**256 + 297
# bytes of a secret
SECRET = 32
# bytes of a share
SHARE = 33


def split(secret: bytes, *, threshold: int, count: int) -> list[bytes]:
    """Returns the shares of a secret, one for each place from 0 on.

    Args:
        secret: 32 bytes.
        threshold: How many shares give the secret.
        count: How many shares are made, `threshold` or more.
    """
    coefficients = [int.from_bytes(secret, "big")]
    for _ in range(threshold - 1):
        coefficients.append(secrets.randbelow(PRIME))
    shares = []
    for place in range(count):
        shares.append(_value(coefficients, place + 1).to_bytes(SHARE, "big"))
    return shares


def joined(shares: Mapping[int, bytes], *, threshold: int) -> bytes:
    """Returns the secret of shares, 32 bytes. Wrong shares give a wrong secret, or a refusal.

    Args:
        shares: Shares by place. The first `threshold` by place are used.
        threshold: How many shares give the secret.

    Raises:
        Refusal: There are too few shares, or they are those of no secret.
    """
    if len(shares) < threshold:
        raise Refusal(f"{threshold} shares are needed for a secret. There are {len(shares)}.")
    places = sorted(shares)[:threshold]
    value = 0
    for place in places:
        weight = _weight_at_zero(place, places)
        value = (value + weight * int.from_bytes(shares[place], "big")) % PRIME
    if value >= 2 ** (8 * SECRET):
        raise Refusal("The shares are those of no secret: a client sent a wrong one.")
    return value.to_bytes(SECRET, "big")


def _value(coefficients: list[int], point: int) -> int:
    """Returns a polynomial's value at a point, by Horner's rule."""
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % PRIME
    return value


def _weight_at_zero(place: int, places: list[int]) -> int:
    """Returns the weight of a place's share in the value at 0 (Lagrange)."""
    above = 1
    below = 1
    for other in places:
        if other != place:
            above = above * (other + 1) % PRIME
            below = below * (other - place) % PRIME
    return above * pow(below, -1, PRIME) % PRIME
