from pipelines.reporting import dot_plot, scale
from pipelines.reporting.dot_plot import Figure


def test_places_follow_the_figures_and_zero_is_on_the_axis():
    drawn = dot_plot.column([Figure(0.2, 0.1, 0.3), Figure(-0.1), Figure(None)])
    first, second, third = drawn["marks"]
    assert second["at"] < drawn["zero"] < first["low"] < first["at"] < first["high"] <= 100
    assert (second["low"], third["at"], third["text"]) == (None, None, "–")
    assert first["ends"] == "+0.100 to +0.300"


def test_an_axis_holds_its_round_numbers_and_equal_figures_have_room():
    axis = scale.around([0.93, 0.961])
    assert axis.low < 0.93 < 0.961 < axis.high
    assert all(axis.low <= tick <= axis.high for tick in axis.ticks())
    assert scale.around([0.5, 0.5]) == (0.0, 1.0)
