"""Tests that the cost of a secure sum counts what travels, and who drops out."""

import pytest

from benchmarks.secure_sum_cost import measured

# bytes of names, numbers and headers are not counted, but those of all arrays are
KEYS = 3 * 32 + 64
SEALED = 94
SHARE = 33


@pytest.mark.parametrize(("dropped", "gone"), [(False, 0), (True, 1)])
def test_a_row_counts_the_bytes_of_all_steps(dropped, gone):
    row = measured(5, 100, dropped=dropped)
    assert (row["colluding"], row["threshold"], row["dropped"]) == (2, 4, gone)
    # keys, sealed shares, the masked vector, a signature, and shares
    assert row["bytes_up"] == KEYS + 5 * SEALED + 8 * 100 + 64 + 5 * SHARE
    assert row["up_ratio"] == row["bytes_up"] / 800
    # places of each step are 8 bytes a client
    places = 8 * (5 + 5 + 2 * (5 - gone))
    assert row["bytes_down"] == 5 * KEYS + 5 * SEALED + 5 * 64 + places


def test_times_are_those_of_clients_and_server():
    row = measured(5, 100, dropped=False)
    for name in ("client_cpu_seconds", "server_cpu_seconds", "plain_cpu_seconds"):
        assert row[name] >= 0
    assert row["client_cpu_seconds"] > 0
