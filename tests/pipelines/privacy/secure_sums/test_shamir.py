"""Tests shares: any threshold of them gives the secret, and fewer tell nothing."""

import contextlib
import itertools
import secrets

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.shamir import PRIME, SHARE, joined, split


def is_probable_prime(number: int) -> bool:
    """Returns whether a number passes 40 rounds of Miller and Rabin's test."""
    odd = number - 1
    twos = 0
    while odd % 2 == 0:
        odd //= 2
        twos += 1
    for _ in range(40):
        value = pow(secrets.randbelow(number - 3) + 2, odd, number)
        if value in (1, number - 1):
            continue
        for _ in range(twos - 1):
            value = value * value % number
            if value == number - 1:
                break
        else:
            return False
    return True


def test_the_modulus_is_a_prime_above_all_secrets():
    assert PRIME > 2**256
    assert is_probable_prime(PRIME)
    assert not is_probable_prime(PRIME + 2)


@settings(deadline=None, max_examples=40)
@given(st.binary(min_size=32, max_size=32), st.integers(1, 5), st.integers(0, 2), st.randoms())
def test_any_threshold_of_shares_gives_the_secret(secret, threshold, more, random):
    shares = dict(enumerate(split(secret, threshold=threshold, count=threshold + more)))
    for places in itertools.combinations(shares, threshold):
        chosen = {place: shares[place] for place in random.sample(places, threshold)}
        assert joined(chosen, threshold=threshold) == secret


def test_too_few_shares_are_refused():
    shares = dict(enumerate(split(bytes(32), threshold=3, count=5)))
    with pytest.raises(Refusal, match="3 shares are needed"):
        joined({0: shares[0], 4: shares[4]}, threshold=3)


def low_byte_counts(threshold: int, place: int) -> list[int]:
    counts = [0] * 16
    for _ in range(3200):
        share = split(b"\1" * 32, threshold=threshold, count=place + 1)[place]
        counts[share[-1] % 16] += 1
    return counts


def test_one_share_of_a_known_secret_is_uniform():
    assert chisquare(low_byte_counts(threshold=2, place=3)).pvalue > 1e-6


def test_a_share_that_is_the_secret_is_not_uniform():
    assert chisquare(low_byte_counts(threshold=1, place=3)).pvalue < 1e-9


def test_a_wrong_share_gives_another_secret_or_a_refusal():
    secret = secrets.token_bytes(32)
    shares = dict(enumerate(split(secret, threshold=3, count=3)))
    for place, share in shares.items():
        changed = (int.from_bytes(share, "big") + 1) % PRIME
        wrong = {**shares, place: changed.to_bytes(SHARE, "big")}
        with contextlib.suppress(Refusal):
            assert joined(wrong, threshold=3) != secret


def test_each_split_draws_other_shares():
    first, second = (split(bytes(32), threshold=2, count=3) for _ in range(2))
    assert not set(first) & set(second)
