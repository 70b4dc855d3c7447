"""Tests the words for gains by hand-made intervals: what is shown, what is not, and fifty clients."""

import pytest

from pipelines.reporting import worth


def gain(value, low, high, differing=20):
    return {"value": value, "low": low, "high": high, "differing": differing}


def entry_of(gains, mean, elsewhere):
    """Returns a method's figures; `elsewhere` is {client: gain}, with no interval."""
    value = sum(elsewhere.values()) / len(elsewhere)
    return {
        "gains": gains,
        "clients": dict.fromkeys(gains, 0.9),
        "over_local": mean["value"],
        "over_local_low": mean["low"],
        "over_local_high": mean["high"],
        "over_local_differing": mean["differing"],
        "elsewhere": {"value": value, "low": None, "high": None, "clients": elsewhere},
    }


UP = gain(0.1, 0.05, 0.2)
LEVEL = gain(0.01, -0.05, 0.06)
DOWN = gain(-0.1, -0.2, -0.05)
FEW = gain(0.1, 0.05, 0.2, differing=5)


@pytest.mark.parametrize(
    ("gains", "mean", "elsewhere", "expected"),
    [
        ({"a": UP, "b": UP}, UP, 0.2, "Yes: +0.100 at home; +0.200 elsewhere"),
        ({"a": UP, "b": DOWN}, UP, -0.2, "Yes: +0.100 at home, but b not"),
        ({"a": UP, "b": LEVEL}, LEVEL, 0.2, "Yes, for a at home; +0.200 elsewhere"),
        ({"a": LEVEL, "b": LEVEL}, LEVEL, 0.2, "+0.200 elsewhere; at home no difference is shown"),
        ({"a": DOWN, "b": DOWN}, DOWN, 0.2, "Not at home: -0.100; +0.200 elsewhere"),
        ({"a": LEVEL, "b": FEW}, FEW, -0.2, "No gain is shown"),
    ],
)
def test_the_headline_claims_no_more_than_is_shown(gains, mean, elsewhere, expected):
    entry = entry_of(gains, mean, dict.fromkeys(gains, elsewhere))
    assert worth.headline(entry) == expected


def test_an_interval_that_holds_zero_or_few_images_shows_no_difference():
    entry = entry_of({"a": UP, "b": LEVEL, "c": FEW}, LEVEL, {"a": 0.1, "b": 0.2, "c": -0.1})
    told = worth.at_home(entry, {"clients": {"a": 0.8, "b": 0.8, "c": 0.8}})
    assert told[0] == "a gains at home: 0.800 to 0.900 (+0.100 [+0.050, +0.200])."
    assert told[1] == "For b and c no difference is shown at home."
    assert "2 of 3 clients gain" in worth.elsewhere(entry["elsewhere"])
    assert not worth.shown_elsewhere(entry["elsewhere"])


def test_fifty_clients_are_a_few_sentences():
    clients = [f"c{number}" for number in range(50)]
    gains = {client: (UP if number < 20 else LEVEL) for number, client in enumerate(clients)}
    entry = entry_of(gains, UP, dict.fromkeys(clients, 0.1))
    told = " ".join(worth.at_home(entry, {"clients": dict.fromkeys(clients, 0.8)}))
    assert "20 of 50 clients gain at home" in told and "and 25 others no difference" in told
    assert len(told) < 320
