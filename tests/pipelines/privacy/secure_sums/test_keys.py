"""Tests key agreement: the same at both ends, and independent for each round, purpose and pair."""

import itertools
import os
import subprocess
import sys

import pytest
from project import ROOT

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
    """Two programs that do the same from their start have no key in common."""
    program = (
        "import random, numpy\n"
        "from pipelines.privacy.secure_sums import keys\n"
        "for source in (random.seed, numpy.random.seed):\n"
        "    source(0)\n"
        "    print(keys.fresh().hex())\n"
    )
    command = [sys.executable, "-c", program]
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    drawn = []
    for _ in range(2):
        shown = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        drawn += shown.stdout.split()
    assert len(set(drawn)) == len(drawn) == 4
