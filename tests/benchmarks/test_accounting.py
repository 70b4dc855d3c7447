"""Tests that the benchmark of the accounting compares two ways to the same figure."""

from benchmarks import accounting
from benchmarks.common import kept


def test_both_ways_account_for_the_same_falling_noise():
    schedule = accounting.falling(12.0, 3)
    assert [noise for noise, _, _ in schedule] == [12.0, 12.0 * 0.99, 12.0 * 0.99**2]
    row = accounting.measured(12.0, rounds=3, repeats=1)
    assert abs(row["epsilon_minus_library"]) <= 1e-12
    assert row["ratio"] > 0 and row["ratio_of_distributions"] > 0


def test_the_stored_figures_are_of_equal_epsilons():
    """The file is what docs and reviews read: a ratio of two different figures says nothing."""
    rows = kept("accounting")
    assert rows
    for row in rows:
        assert abs(row["epsilon_minus_library"]) <= 1e-12
