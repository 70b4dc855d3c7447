"""Tests that sealed shares open for their receiver alone, unchanged, in their own round."""

import pytest

from pipelines.privacy.secure_sums import keys
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.sealed_shares import SEALED, seal, unseal

SENDER = keys.fresh()
RECEIVER = keys.fresh()
SHARES = bytes(range(66))
NAMES = {"sender": "c0", "receiver": "c1", "terms": b"r1"}


def sealed() -> bytes:
    return seal(SHARES, private=SENDER, public=keys.public_of(RECEIVER), **NAMES)


def opened(content: bytes, private: bytes = RECEIVER, **others) -> bytes:
    return unseal(content, private=private, public=keys.public_of(SENDER), **{**NAMES, **others})


def test_the_receiver_opens_them():
    assert len(sealed()) == SEALED
    assert SHARES[:8] not in sealed()
    assert opened(sealed()) == SHARES


@pytest.mark.parametrize(
    "others",
    [
        {"sender": "c2"},
        {"receiver": "c2"},
        {"sender": "c1", "receiver": "c0"},
        {"terms": b"r2"},
        {"private": keys.fresh()},
    ],
)
def test_nobody_else_opens_them_nor_for_another_direction_or_round(others):
    with pytest.raises(Refusal, match="do not open"):
        opened(sealed(), **others)


@pytest.mark.parametrize("place", [0, 12, 40, SEALED - 1])
def test_a_changed_byte_is_noticed(place):
    content = bytearray(sealed())
    content[place] ^= 1
    with pytest.raises(Refusal, match="'c0' for 'c1' do not open"):
        opened(bytes(content))


def test_garbage_is_refused():
    for content in (b"", bytes(SEALED), sealed() + b"x"):
        with pytest.raises(Refusal):
            opened(content)
