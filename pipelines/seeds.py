"""One seed for each operation, so that adding a client or a stage changes no other's random numbers."""

import hashlib


def derive(seed: int, *names: object) -> int:
    """A 31-bit seed for the operation called `names`. Never used for privacy noise (privacy/noise.py)."""
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
