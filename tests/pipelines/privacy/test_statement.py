"""Tests what stands beside every released number."""

import math
from dataclasses import replace

import pytest

from pipelines.privacy.statement import NOT_COVERED, OF_NETWORK, Statement, combined, not_covered

FORMAL = Statement(mechanism="m", epsilon=3.0, delta=1e-5, mu=0.7, guarantee="formal", noise="os")


def test_statement_names_everything_rule_one_asks_for():
    block = FORMAL.as_dict()
    assert {
        "epsilon",
        "delta",
        "unit",
        "relation",
        "sampling",
        "accountant",
        "guarantee",
        "noise",
    } <= set(block)
    assert block["unit"] == "record" and block["relation"] == "add or remove one record"
    assert block["not_covered"]


def test_formal_sentence_carries_both_parameters_and_the_relation():
    for part in ("(3, 1e-05)", "add or remove one record"):
        assert part in FORMAL.as_dict()["statement"]
    assert "NO PRIVACY" not in FORMAL.sentence


@pytest.mark.parametrize("epsilon, noise", [(math.inf, ""), (3.0, "SEEDED TEST NOISE")])
def test_without_a_guarantee_the_sentence_says_so_and_claims_no_epsilon(epsilon, noise):
    sentence = replace(FORMAL, guarantee="none", epsilon=epsilon, noise=noise).sentence
    assert sentence.startswith("NO PRIVACY GUARANTEE")
    assert "differential privacy" not in sentence
    assert noise in sentence


def test_what_is_made_of_several_releases_says_whom_each_of_them_trusts():
    trusting = replace(FORMAL, trust="This bound holds while nobody talks.")
    statements = [FORMAL.as_dict(), trusting.as_dict(), trusting.as_dict()]
    assert "trust" not in combined(statements[:1])
    assert combined(statements)["trust"] == ["This bound holds while nobody talks."]
    assert trusting.sentence.endswith("compose with it. This bound holds while nobody talks.")


def test_what_is_made_on_an_encoder_does_not_cover_its_pretraining():
    statements = [FORMAL.as_dict(), replace(FORMAL, not_covered=("else", "timing")).as_dict()]
    assert not_covered(statements, "cnn") == [*NOT_COVERED, "else"]
    assert not_covered(statements, "encoder") == [*NOT_COVERED, "else", *OF_NETWORK["encoder"]]


def test_where_nothing_is_released_the_usual_is_still_not_covered():
    assert not_covered([]) == list(NOT_COVERED)
