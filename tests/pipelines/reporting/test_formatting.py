import pytest

from pipelines.reporting import formatting


@pytest.mark.parametrize(
    ("value", "text"),
    [(10.0, "10"), (9.99877, "9.999"), (15.4641, "15.47"), (1e-5, "1e-05"), (float("inf"), "∞")],
)
def test_a_bound_is_never_rounded_down(value, text):
    assert formatting.bound(value) == text


def test_a_figure_that_does_not_exist_is_a_dash():
    assert formatting.number(None) == formatting.number(float("nan")) == "–"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999_999, "1 MB"),
        (31_400_000, "31.4 MB"),
        (2e15, "2e+03 TB"),
        (None, "–"),
    ],
)
def test_an_amount_of_bytes_has_three_digits(count, text):
    assert formatting.amount(count) == text
