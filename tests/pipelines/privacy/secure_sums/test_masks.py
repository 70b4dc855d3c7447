"""Tests masks: the stream is the standard's, and those of a pair cancel whatever the order."""

import itertools

import numpy as np
from scipy.stats import chisquare

from pipelines.privacy.secure_sums import keys, masks

# RFC 8439, appendix A.1, test vector 1: key, counter and nonce are zeros
STANDARD = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"


def test_the_stream_is_that_of_the_standard():
    assert masks.stream(bytes(32), 4).astype("<u8").tobytes().hex() == STANDARD


def test_pair_masks_cancel_in_the_sum_over_all():
    privates = [keys.fresh() for _ in range(5)]
    publics = [keys.public_of(private) for private in privates]
    total = np.zeros(7, np.uint64)
    for own, private in enumerate(privates):
        others = [(place, public) for place, public in enumerate(publics) if place != own]
        masks.add_pair_masks(total, private, own, reversed(others), terms=b"r1")
    assert not total.any()


def high_byte_pvalue(values: np.ndarray) -> float:
    return chisquare(np.bincount(values >> np.uint64(56), minlength=256)).pvalue


def test_masks_of_the_same_keys_in_two_rounds_have_nothing_in_common():
    """Key pairs are drawn anew in each round. Masks differ even where somebody kept a pair."""
    one, other = keys.fresh(), keys.public_of(keys.fresh())
    first, second = (
        masks.pair_mask(one, other, (0, 1), 20_000, terms=terms) for terms in (b"r1", b"r2")
    )
    assert high_byte_pvalue(first - second) > 1e-6
    again = masks.pair_mask(one, other, (1, 0), 20_000, terms=b"r1")
    assert high_byte_pvalue(first - again) < 1e-9


def test_a_key_that_two_clients_announce_gives_two_masks():
    """With one mask for both, those of a client between the two would cancel."""
    between, copied = keys.fresh(), keys.public_of(keys.fresh())
    left = np.zeros(20_000, np.uint64)
    masks.add_pair_masks(left, between, 1, [(0, copied), (2, copied)], terms=b"r1")
    assert high_byte_pvalue(left) > 1e-6


def test_self_masks_differ_by_seed_and_by_round():
    one, other = keys.fresh(), keys.fresh()
    found = [
        masks.self_mask(one, 50, terms=b"r1"),
        masks.self_mask(one, 50, terms=b"r2"),
        masks.self_mask(other, 50, terms=b"r1"),
    ]
    for first, second in itertools.combinations(found, 2):
        assert not (first == second).any()


def test_a_commitment_is_not_the_key_of_the_mask_and_binds_to_the_seed():
    seed = keys.fresh()
    commitment = masks.commitment(seed, terms=b"r1")
    assert (masks.stream(commitment, 4) != masks.self_mask(seed, 4, terms=b"r1")).all()
    assert commitment == masks.commitment(seed, terms=b"r1")
    assert commitment != masks.commitment(keys.fresh(), terms=b"r1")
