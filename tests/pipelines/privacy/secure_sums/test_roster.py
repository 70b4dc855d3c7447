"""Tests who may sign for whom."""

import pytest

from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import Identity, Roster

IDENTITIES = {name: Identity.fresh() for name in ("c0", "c1", "c2")}
KEYS = {name: identity.public for name, identity in IDENTITIES.items()}
ROSTER = Roster(KEYS)


def test_a_signature_is_that_of_its_client_and_content_alone():
    signature = IDENTITIES["c1"].sign(b"text")
    assert ROSTER.has_signed("c1", b"text", signature)
    assert not ROSTER.has_signed("c0", b"text", signature)
    assert not ROSTER.has_signed("c1", b"other", signature)
    assert not ROSTER.has_signed("c1", b"text", bytes(64))


def test_the_order_of_names_does_not_matter_and_each_key_does():
    assert Roster(dict(reversed(KEYS.items()))).digest == ROSTER.digest
    assert Roster({**KEYS, "c0": Identity.fresh().public}).digest != ROSTER.digest


def test_a_key_for_two_clients_or_a_key_that_is_none_is_refused():
    with pytest.raises(Refusal, match="one key for two"):
        Roster({**KEYS, "c3": KEYS["c0"]})
    with pytest.raises(Refusal, match="'c3' must be 32 bytes"):
        Roster({**KEYS, "c3": b"short"})
    with pytest.raises(Refusal, match="'c9' is not on the roster"):
        ROSTER.position("c9")
