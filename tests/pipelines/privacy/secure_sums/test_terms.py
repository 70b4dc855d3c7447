"""Tests that terms are refused under which a lying server would open single vectors."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import Identity, Roster
from pipelines.privacy.secure_sums.terms import Terms, least_threshold, most_colluding

KEYS = [Identity.fresh().public for _ in range(12)]


def terms(clients: int = 5, **others) -> Terms:
    roster = Roster({f"c{number:02}": KEYS[number] for number in range(clients)})
    usual = {"run": "r", "round": 0, "release": "a", "length": 3, "bound": 10, "colluding": 0}
    threshold = others.pop("threshold", clients)
    return Terms(roster=roster, threshold=threshold, **{**usual, **others})


def can_open_two_sets(clients: int, colluding: int, threshold: int) -> bool:
    """Tries every way to show one set to some honest clients and another set to others."""
    honest = clients - colluding
    for first, second in itertools.product(range(honest + 1), repeat=2):
        if first + second <= honest and min(first, second) + colluding >= threshold:
            return True
    return False


@settings(deadline=None, max_examples=60)
@given(st.integers(3, 12), st.data())
def test_the_threshold_is_the_least_that_stops_a_server_that_shows_two_sets(clients, data):
    colluding = data.draw(st.integers(0, clients - 1))
    threshold = data.draw(st.integers(1, clients))
    try:
        terms(clients, colluding=colluding, threshold=threshold)
        accepted = True
    except Refusal as refusal:
        assert "threshold must be in" in str(refusal)
        accepted = False
    assert accepted != can_open_two_sets(clients, colluding, threshold)
    if accepted:
        assert threshold >= least_threshold(clients=clients, colluding=colluding)
        assert colluding <= most_colluding(clients=clients, threshold=threshold)


@settings(deadline=None, max_examples=60)
@given(st.integers(3, 12), st.data())
def test_one_below_the_least_threshold_two_sets_can_be_opened(clients, data):
    colluding = data.draw(st.integers(0, clients - 1))
    below = least_threshold(clients=clients, colluding=colluding) - 1
    assert can_open_two_sets(clients, colluding, below)


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ({"clients": 2}, "needs 3 clients"),
        ({"bound": 2**62}, "no sum wraps"),
        ({"bound": 0}, "bound 1 or more"),
        ({"round": -1}, "0 or more"),
        ({"length": 0}, "length"),
        ({"colluding": 5}, "'colluding' must be in"),
        ({"threshold": 6}, "threshold must be in"),
    ],
)
def test_terms_that_make_no_sense_are_refused_with_the_cause(others, text):
    with pytest.raises(Refusal, match=text):
        terms(**others)


def test_the_largest_bound_leaves_room_for_all_clients():
    bound = (2**63 - 1) // 5
    assert terms(bound=bound).bound == bound
    with pytest.raises(Refusal):
        terms(bound=bound + 1)


def test_each_term_changes_the_digest():
    changes = [
        {"run": "s"},
        {"round": 1},
        {"release": "b"},
        {"clients": 6},
        {"length": 4},
        {"bound": 11},
        {"threshold": 4},
        {"colluding": 1},
        {"noise": "other"},
    ]
    digests = {terms(**change).digest for change in changes} | {terms().digest}
    assert len(digests) == len(changes) + 1
