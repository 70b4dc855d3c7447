"""Tests that bytes of fields have one reading."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.privacy.secure_sums.encoding import digest, encoded

TEXTS = st.text("ab1", max_size=3)
FIELDS = st.lists(st.one_of(TEXTS, TEXTS.map(str.encode), st.integers(-12, 12)), max_size=4)


@settings(deadline=None)
@given(FIELDS, FIELDS)
def test_two_lists_of_fields_have_the_same_bytes_only_if_they_are_equal(one, other):
    same = one == other and list(map(type, one)) == list(map(type, other))
    assert (encoded(*one) == encoded(*other)) == same


def test_where_one_field_ends_and_the_next_begins_counts():
    assert digest("ab", "c") != digest("a", "bc") != digest("abc")
    assert digest(b"1") != digest("1") != digest(1)


@pytest.mark.parametrize("field", [1.0, True, None])
def test_a_field_that_has_several_texts_is_refused(field):
    with pytest.raises(TypeError):
        encoded(field)
