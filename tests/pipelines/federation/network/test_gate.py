"""Tests what a client takes and what it answers.

Everything else is refused before anything is computed from it.
"""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.federation.algorithms import dpsgd, nbafl, pppfl, sda_fl
from pipelines.federation.core import local_sgd
from pipelines.federation.core.messages import LARGEST_WEIGHT, Payload, any_bounds
from pipelines.federation.network.gate import (
    LONGEST_CARD,
    Gate,
    Refused,
    check_all_scalars,
    check_arrays,
    check_card,
    check_scalars,
    check_set,
)

TELLS = {**local_sgd.TELLS, **pppfl.TELLS, **sda_fl.TELLS, **nbafl.TELLS, **dpsgd.TELLS}
TEMPLATE = {"w": np.zeros((2, 3), np.float32), "b": np.zeros(3, np.float32)}


@pytest.fixture
def seen() -> list[Payload]:
    return []


@pytest.fixture
def gate(seen) -> Gate:
    def update(payload):
        seen.append(payload)
        return Payload(payload.arrays, {"images": 7})

    return Gate(update, TEMPLATE, rounds=3, tells=TELLS)


def message(number=1, arrays=None, **scalars) -> Payload:
    return Payload(TEMPLATE if arrays is None else arrays, {"round": number, **scalars})


def test_rounds_in_their_order_are_answered(gate, seen):
    for number in (1, 2, 3):
        assert gate.answer(message(number)).scalars == {"images": 7}
    assert [payload.scalars["round"] for payload in seen] == [1, 2, 3]


def test_a_round_may_be_missed_but_never_come_again(gate, seen):
    gate.answer(message(2))
    for number in (2, 1, 4, 0, -1):
        with pytest.raises(Refused):
            gate.answer(message(number))
    assert len(seen) == 1


def test_after_the_end_no_round_follows():
    gate = Gate(
        lambda payload: payload,
        TEMPLATE,
        rounds=3,
        spent=lambda: {"steps": 2, "epsilon_spent": 1.5},
    )
    assert gate.end() == {"steps": 2, "epsilon_spent": 1.5}
    with pytest.raises(Refused, match="round 3 does not follow round 3 of 3"):
        gate.answer(message(3))


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"w": TEMPLATE["w"]},
        {**TEMPLATE, "more": np.zeros(1, np.float32)},
        {**TEMPLATE, "b": np.zeros(4, np.float32)},
        {**TEMPLATE, "b": np.zeros((10**4, 10), np.float32)},
        {**TEMPLATE, "b": np.zeros(3, np.float64)},
        {**TEMPLATE, "b": np.array([None] * 3)},
        {**TEMPLATE, "b": [0.0, 0.0, 0.0]},
        {**TEMPLATE, "b": np.array([0, math.nan, 0], np.float32)},
        {**TEMPLATE, "b": np.array([0, math.inf, 0], np.float32)},
        {**TEMPLATE, "b": np.array([0, 2 * LARGEST_WEIGHT, 0], np.float32)},
        "weights",
    ],
)
def test_other_arrays_are_refused_unseen(gate, seen, arrays):
    with pytest.raises(Refused):
        gate.answer(message(arrays=arrays))
    assert not seen
    gate.answer(message())  # a refusal does not use up its round


@pytest.mark.parametrize(
    "scalars",
    [
        {"round": 1.0},
        {"round": True},
        {"round": "1"},
        {"noise_factor": 0.0},
        {"noise_factor": -1.0},
        {"noise_factor": 1.5},
        {"noise_factor": math.nan},
        {"noise_factor": 1},
        {"local_steps": 0},
        {"local_steps": 10**9},
        {"clipping_norm": math.inf},
        {"clipping_norm": 0.0},
        {"send": "records"},
    ],
)
def test_other_numbers_are_refused_unseen(gate, seen, scalars):
    with pytest.raises(Refused):
        gate.answer(Payload(TEMPLATE, {"round": 1, **scalars}))
    assert not seen


def test_a_message_without_a_round_is_refused(gate, seen):
    with pytest.raises(Refused):
        gate.answer(Payload(TEMPLATE, {}))
    assert not seen


def test_what_a_dp_server_says_is_taken(gate):
    gate.answer(message(1, noise_factor=0.5, local_steps=3, clipping_norm=1.0))


BEYOND = [
    {"images": number}
    for number in (math.nan, math.inf, -2, 0, 1e308, 10**30, 7.0, "7", True, None)
]
BEYOND += [{"steps": number} for number in (0, -1, math.nan)]
BEYOND += [{"train_loss": number} for number in (math.nan, math.inf, -1.0, [1.0])]
BEYOND += [
    {"query_accuracy": 1.5},
    {"left": -1},
    {"epsilon_spent": math.nan},
    {"signal_to_noise": -2.0},
]


@pytest.mark.parametrize("scalars", [{"accuracy": 0.5}, {3: 1}, *BEYOND], ids=str)
def test_no_other_number_leaves(scalars):
    gate = Gate(lambda payload: Payload(payload.arrays, scalars), TEMPLATE, 1, TELLS)
    with pytest.raises(Refused, match="may not leave"):
        gate.answer(message())
    with pytest.raises(Refused):
        check_scalars(scalars, any_bounds(TELLS))


@pytest.mark.parametrize("value", ["record of patient 17", -123.456789, [5.5]], ids=str)
def test_what_may_not_leave_is_not_in_the_refusal_which_does(value):
    gate = Gate(
        lambda payload: Payload(payload.arrays, {"signal_to_noise": value}), TEMPLATE, 1, TELLS
    )
    with pytest.raises(Refused) as refused:
        gate.answer(message())
    assert "'signal_to_noise' may not leave" in str(refused.value) and str(value) not in str(
        refused.value
    )


def test_a_run_without_noise_may_say_so():
    endless = ("epsilon_spent", "epsilon_by_pld", "signal_to_noise")
    check_scalars(dict.fromkeys(endless, math.inf), any_bounds(TELLS))


def test_an_account_that_could_afford_no_step_may_say_so():
    gate = Gate(
        lambda payload: None, TEMPLATE, rounds=1, spent=lambda: {"steps": 0, "epsilon_spent": 0.0}
    )
    assert gate.end()["steps"] == 0


def test_a_server_wants_all_the_numbers_of_a_run():
    bounds = {"images": (int, 7, 7), "steps": (int, 1, 2)}
    check_all_scalars({"images": 7, "steps": 2}, bounds)
    for scalars in (
        {"images": 7},
        {"images": 6, "steps": 2},
        {"images": 7, "steps": 3},
        {"images": 7, "train_loss": 1.0},
    ):
        with pytest.raises(Refused):
            check_all_scalars(scalars, bounds)


@pytest.mark.parametrize("name", ["x\n\x1b[2J", "x" * 10**5, ("x",) * 10**5])
def test_a_refusal_is_one_line(gate, name):
    for refusing in (
        lambda: gate.answer(Payload(TEMPLATE, {"round": 1, name: 1})),
        lambda: check_scalars({name: 1}, any_bounds(TELLS)),
    ):
        with pytest.raises(Refused) as refused:
            refusing()
        assert str(refused.value).isprintable() and len(str(refused.value)) < 600


def test_a_set_that_others_will_see_has_the_runs_shapes_and_classes():
    images, labels = np.zeros((4, 8, 8, 1), np.uint8), np.array([0, 1, 2, 2])
    check_set({"images": images, "labels": labels}, images.shape, 3)
    for content in (
        {"images": images, "labels": labels - 1},
        {"images": images, "labels": labels + 1},
        {"images": images[:3], "labels": labels[:3]},
        {"images": images},
        [images, labels],
        None,
    ):
        with pytest.raises(Refused, match="its set"):
            check_set(content, (4, 8, 8, 1), 3)


def test_a_client_that_has_left_answers_nothing():
    assert Gate(lambda payload: None, TEMPLATE, rounds=1).answer(message()) is None


@given(st.binary(min_size=12, max_size=12))
def test_arrays_pass_exactly_when_all_their_values_are_usual(content):
    values = np.frombuffer(content, np.float32)
    usual = all(math.isfinite(value) and abs(value) <= LARGEST_WEIGHT for value in values.tolist())
    try:
        check_arrays({"b": values}, {"b": TEMPLATE["b"]})
    except Refused:
        assert not usual
    else:
        assert usual


CARD = {"privacy": {"epsilon": 3.0, "guarantee": "formal"}, "release": "abc", "more": [1, 2]}


def test_a_card_is_taken_as_it_is():
    assert check_card(json.dumps(CARD)) == CARD


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        CARD,
        "no json",
        "[]",
        "3",
        "[" * 40_000,
        json.dumps({**CARD, "more": "x" * LONGEST_CARD}),
        json.dumps({**CARD, "release": 3}),
        json.dumps({**CARD, "privacy": {"epsilon": -1.0, "guarantee": "formal"}}),
        json.dumps({**CARD, "privacy": {"epsilon": "much", "guarantee": "formal"}}),
        json.dumps({**CARD, "privacy": {"epsilon": float("nan"), "guarantee": "formal"}}),
        json.dumps({**CARD, "privacy": {"epsilon": 1.0}}),
        json.dumps({**CARD, "privacy": None}),
    ],
)
def test_what_is_no_card_is_refused(wrong):
    with pytest.raises(Refused, match="its card must"):
        check_card(wrong)
