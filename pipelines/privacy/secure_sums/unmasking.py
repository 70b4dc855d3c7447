"""Takes the masks off the sum of masked vectors, with the shares that clients handed out.

The server finds the seed of each survivor, and the mask key of each client that dropped out after it
had sent shares. It checks each: a seed by its commitment, a mask key by its public key. So a client
that sent a wrong share is noticed, and no wrong sum comes of it.
"""

from collections.abc import Mapping

import numpy as np

from pipelines.privacy.secure_sums import keys, masks, shamir
from pipelines.privacy.secure_sums.announced import Announced
from pipelines.privacy.secure_sums.messages import Places
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.terms import Terms


def unmasked(
    terms: Terms,
    announced: Announced,
    sharers: Places,
    masked: Mapping[int, np.ndarray],
    shares: Mapping[int, np.ndarray],
) -> np.ndarray:
    """Returns the sum of the survivors' vectors, int64 [length].

    Args:
        terms: The terms.
        announced: The public keys.
        sharers: Who sent shares.
        masked: The masked vectors, uint64 [length], by the survivors' places.
        shares: What each client handed out, uint8 [K, 33], by its place.

    Raises:
        Refusal: A secret does not fit what its client announced, or the sum is out of bounds.
    """
    total = np.zeros(terms.length, np.uint64)
    for place, vector in masked.items():
        total += vector
        total -= _self_mask(terms, announced, place, shares)
    for place in sharers:
        if place not in masked:
            total += _cancelled(terms, announced, place, tuple(masked), shares)
    signed = total.astype(np.int64)
    largest = len(masked) * terms.bound
    if signed.max() > largest or signed.min() < -largest:
        raise Refusal(
            f"An entry of the sum lies outside of {len(masked)} times the bound: a client sent "
            "garbage, or has entries beyond the bound. Begin a new release without it."
        )
    return signed


def _self_mask(
    terms: Terms, announced: Announced, place: int, shares: Mapping[int, np.ndarray]
) -> np.ndarray:
    """Returns the self mask of a survivor, uint64 [length]."""
    seed = _secret(terms, place, shares)
    if masks.commitment(seed, terms=terms.digest) != announced.commitments[place].tobytes():
        raise _wrong(terms, place)
    return masks.self_mask(seed, terms.length, terms=terms.digest)


def _cancelled(
    terms: Terms,
    announced: Announced,
    place: int,
    survivors: Places,
    shares: Mapping[int, np.ndarray],
) -> np.ndarray:
    """Returns the pair masks that a client would have added, had it sent its vector."""
    key = _secret(terms, place, shares)
    if keys.public_of(key) != announced.mask_keys[place].tobytes():
        raise _wrong(terms, place)
    others = [(other, announced.mask_keys[other].tobytes()) for other in survivors]
    total = np.zeros(terms.length, np.uint64)
    masks.add_pair_masks(total, key, place, others, terms=terms.digest)
    return total


def _secret(terms: Terms, place: int, shares: Mapping[int, np.ndarray]) -> bytes:
    """Returns the secret of a client that the handed-out shares give."""
    rows = {giver: array[place].tobytes() for giver, array in shares.items()}
    try:
        return shamir.joined(rows, threshold=terms.threshold)
    except Refusal:
        raise _wrong(terms, place) from None


def _wrong(terms: Terms, place: int) -> Refusal:
    """Returns the refusal where the shares of a client's secret do not give it."""
    return Refusal(
        f"The shares of {terms.roster.names[place]!r} do not give what it announced: it sealed wrong "
        "shares, or another client handed out a wrong one. The round ends without a sum."
    )
