"""Tests that an epsilon in words is never below the epsilon."""

from hypothesis import given
from hypothesis import strategies as st

from pipelines.privacy.ledger.wording import rounded_up


@given(st.floats(1e-6, 30.0))
def test_a_total_is_rounded_up_to_three_decimals(epsilon):
    said = float(rounded_up(epsilon))
    # a millionth of the last place is not a next one
    assert epsilon - 2e-9 <= said < epsilon + 0.001
