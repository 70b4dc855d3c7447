"""Derives a seed per operation: a new client or stage changes no other's random numbers."""

import hashlib


def derive(seed: int, *names: object) -> int:
    """Returns a 31-bit seed for the operation that `names` name.

    It is never used for privacy noise (privacy/noise.py).

    >>> derive(0, "fine_tune", "digits", "c0") == derive(0, "fine_tune", "digits", "c0")
    True
    >>> derive(0, "fine_tune", "digits", "c0") == derive(0, "fine_tune", "digits", "c1")
    False

    Args:
        seed: The run's seed.
        *names: What the operation is: a stage, a data set, a client.
    """
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
