from pipelines.reporting import dot_plot, scale
from pipelines.reporting.dot_plot import Figure


def test_places_follow_the_figures_and_zero_is_on_the_axis():
    drawn = dot_plot.column([Figure(0.2, 0.1, 0.3), Figure(-0.1), Figure(None)])
    first, second, third = drawn["marks"]
    assert second["at"] < drawn["zero"] < first["low"] < first["at"] < first["high"] <= 100
    assert (second["low"], third["at"], third["text"]) == (None, None, "–")
    assert first["ends"] == "+0.100 to +0.300"


def test_of_many_numbers_on_an_axis_every_other_one_is_told_zero_among_them():
    drawn = dot_plot.column([Figure(0.35), Figure(0.02)])
    assert [tick["text"] for tick in drawn["ticks"]] == ["0", "", "+0.2", ""]
    below = dot_plot.column([Figure(-0.35), Figure(0.02)])
    assert [tick["text"] for tick in below["ticks"]] == ["", "-0.2", "", "0"]
    few = dot_plot.column([Figure(0.11), Figure(-0.03)])
    assert [tick["text"] for tick in few["ticks"]] == ["0", "+0.05", "+0.1"]


def test_an_axis_holds_its_round_numbers_and_equal_figures_have_room():
    axis = scale.around([0.93, 0.961])
    assert axis.low < 0.93 < 0.961 < axis.high
    assert all(axis.low <= tick <= axis.high for tick in axis.ticks())
    assert scale.around([0.5, 0.5]) == (0.0, 1.0)
