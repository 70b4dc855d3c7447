"""The crossing: paired gains by hand, and the least number of labels from which none shows."""

import pytest

from benchmarks import crossing


def cell(recipe: str, labels: str, own: float, client: str = "n0", seed: int = 0) -> dict:
    start = "random" if recipe == "alone" else "pppfl"
    way = {"regime": "5", "dataset": "digits", "start": start, "recipe": recipe}
    figures = {"own": own, "global": own / 2, "records": int(labels)}
    return {**way, "labels": labels, "client": client, "seed": seed, **figures}


def test_a_gain_is_paired_by_client_and_seed():
    cells = [
        cell("alone", "8", 0.5),
        cell("alone", "8", 0.7, seed=1),
        cell("replay", "8", 0.6),
        cell("replay", "8", 0.9, seed=1),
        cell("replay", "8", 0.9, client="n1"),
        cell("pair", "8", 0.0),
    ]
    found = crossing.gains(cells, "digits", "8", "own")
    assert found == {(0, "n0"): pytest.approx(0.1), (1, "n0"): pytest.approx(0.2)}
    (row,) = crossing.table(cells)
    assert row["own_gain"] == pytest.approx(0.15) and row["own_worst"] == pytest.approx(0.1)
    assert row["global_gain"] == pytest.approx(0.075)


def test_another_start_is_compared_with_the_same_recipe():
    other = {**cell("replay", "8", 0.5), "start": "fedavg"}
    plain = {**other, "recipe": "plain", "own": 0.0}
    (row,) = crossing.rivals([cell("alone", "8", 0.1), cell("replay", "8", 0.7), other, plain])
    assert (row["start"], row["own_gain"]) == ("fedavg", pytest.approx(0.2))


@pytest.mark.parametrize(
    ("lows", "crossed"),
    [
        ([0.2, 0.1, 0.01], None),
        ([0.2, -0.1, -0.2], 16),
        ([0.2, -0.1, 0.01], None),
        ([0.2, 0.1, None], 64),
        ([-0.1, -0.1, -0.1], 8),
    ],
)
def test_it_gains_nothing_from_where_no_later_interval_is_above_zero(lows, crossed):
    rows = [{"median_labels": n, "own_low": low} for n, low in zip((8, 16, 64), lows)]
    assert crossing.crossing(rows, "own") == crossed
