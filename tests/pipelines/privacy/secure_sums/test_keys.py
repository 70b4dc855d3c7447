"""Tests key agreement: the same at both ends, and independent for each round, purpose and pair."""

import itertools

import numpy as np
import pytest

from pipelines.privacy.secure_sums import keys
from pipelines.privacy.secure_sums.refusals import Refusal

ONE = keys.fresh()
OTHER = keys.fresh()
AGREED = {"terms": b"r1", "purpose": "masks"}


def test_both_ends_have_the_same_key():
    here = keys.shared(ONE, keys.public_of(OTHER), **AGREED)
    assert here == keys.shared(OTHER, keys.public_of(ONE), **AGREED)


def test_round_purpose_context_and_pair_each_give_another_key():
    public = keys.public_of(OTHER)
    found = [
        keys.shared(ONE, public, **AGREED),
        keys.shared(ONE, public, **{**AGREED, "terms": b"r2"}),
        keys.shared(ONE, public, **{**AGREED, "purpose": "shares"}),
        keys.shared(ONE, public, b"c0", b"c1", **AGREED),
        keys.shared(ONE, public, b"c1", b"c0", **AGREED),
        keys.shared(ONE, keys.public_of(keys.fresh()), **AGREED),
    ]
    assert all(one != other for one, other in itertools.combinations(found, 2))


@pytest.mark.parametrize("public", [bytes(32), b"\1" + bytes(31)])
def test_a_public_key_that_gives_everybody_the_same_secret_is_refused(public):
    with pytest.raises(Refusal, match="forged"):
        keys.shared(ONE, public, **AGREED)


def test_no_seed_of_a_program_reaches_a_key():
    import random

    drawn = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)
        drawn.append(keys.fresh())
    assert drawn[0] != drawn[1]
