"""Tests what the clients of a joint release sign, and what a reader of a card can check."""

import numpy as np
import pytest

from pipelines.errors import UserError
from pipelines.privacy.secure_sums.roster import Identity, Roster
from pipelines.seal import Seal, chained, signed_by

IDENTITIES = {name: Identity.fresh() for name in ("c0", "c1", "c2")}
ROSTER = Roster({name: identity.public for name, identity in IDENTITIES.items()})
TOGETHER = {"c0": "a" * 32, "c1": "b" * 32, "c2": "c" * 32}
SEAL = Seal("a release", chained(b"", 0, np.array([1, 2]), 3), TOGETHER)


def card(seal: Seal = SEAL) -> dict:
    signatures = {name: key.sign(seal.content).hex() for name, key in IDENTITIES.items()}
    return {
        "release": seal.together["c0"],
        "together": dict(seal.together),
        "sealed": seal.facts(signatures),
    }


@pytest.mark.parametrize(
    "other",
    [
        Seal("another", SEAL.totals, TOGETHER),
        Seal(SEAL.release, chained(b"", 0, np.array([1, 3]), 3), TOGETHER),
        Seal(SEAL.release, chained(b"", 0, np.array([1, 2]), 2), TOGETHER),
        Seal(SEAL.release, SEAL.totals, {**TOGETHER, "c2": "d" * 32}),
        Seal(SEAL.release, SEAL.totals, {"c0": "a" * 32, "c1": "b" * 32}),
        Seal(SEAL.release, SEAL.totals, {"c0": "b" * 32, "c1": "a" * 32, "c2": "c" * 32}),
    ],
)
def test_a_signature_is_of_one_release_its_totals_and_its_names(other):
    assert other.content != SEAL.content
    signature = IDENTITIES["c0"].sign(SEAL.content).hex()
    assert SEAL.is_signed(ROSTER, "c0", signature)
    assert not other.is_signed(ROSTER, "c0", signature)
    assert not SEAL.is_signed(ROSTER, "c1", signature)


@pytest.mark.parametrize("other", [None, 3, b"a" * 128, "A" * 128, "a" * 64, "x" * 128, ["a"]])
def test_what_is_no_signature_signs_nothing(other):
    assert not SEAL.is_signed(ROSTER, "c0", other)


def test_the_order_of_the_names_does_not_count():
    backwards = dict(reversed(TOGETHER.items()))
    assert Seal(SEAL.release, SEAL.totals, backwards).content == SEAL.content


def test_a_hash_of_totals_is_of_all_of_them_in_their_order():
    one = np.array([1, 2])
    other = np.array([[3], [4]])
    after = chained(chained(b"", 0, one, 3), 1, other, 3)
    assert after != chained(chained(b"", 0, other, 3), 1, one, 3)
    assert after != chained(b"", 1, other, 3)
    assert after != chained(chained(b"", 0, one, 3), 1, other, 2)
    assert after == chained(chained(b"", 0, one.astype(">i8"), 3), 1, other, 3)


def test_a_reader_with_the_roster_sees_who_signed_a_card():
    assert signed_by(card(), ROSTER) == ("c0", "c1", "c2")
    spoiled = card()
    spoiled["together"]["c1"] = "0" * 32
    assert signed_by(spoiled, ROSTER) == ()
    forged = card()
    forged["sealed"]["signatures"]["c1"] = forged["sealed"]["signatures"]["c0"]
    assert signed_by(forged, ROSTER) == ("c0", "c2")


def test_a_card_that_nobody_signed_is_told_in_a_sentence():
    with pytest.raises(UserError, match="lacks 'sealed': no clients have signed its release"):
        signed_by({"release": "a" * 32, "together": TOGETHER}, ROSTER)


@pytest.mark.parametrize("release", ["f" * 32, "", None, 3])
def test_a_seal_of_another_release_signs_nothing(release):
    with pytest.raises(UserError, match="'sealed' is of another release than the card"):
        signed_by({**card(), "release": release}, ROSTER)


def test_a_signer_that_the_roster_lacks_has_signed_nothing():
    fewer = Roster({name: IDENTITIES[name].public for name in ("c0", "c1")})
    assert signed_by(card(), fewer) == ("c0", "c1")


DAMAGED = [
    {"sealed": None},
    {"sealed": 3},
    {"sealed": {**card()["sealed"], "totals": "x"}},
    {"sealed": {**card()["sealed"], "release": None}},
    {"sealed": {**card()["sealed"], "release": "\ud800"}},
    {"sealed": {**card()["sealed"], "signatures": ["c0"]}},
    {"together": None},
    {"together": ["c0"]},
    {"together": {**TOGETHER, "c1": None}},
    {"together": {**TOGETHER, "c1": 1.5}},
]


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_seal_is_told_in_a_sentence(damage):
    with pytest.raises(UserError, match="'sealed' is none that a joint release writes"):
        signed_by({**card(), **damage}, ROSTER)
