import itertools

from pipelines.reporting import line_plot


def test_lines_rise_from_left_to_right_and_their_names_do_not_touch():
    lines = {f"m{number}": [(0, 0.1), (4, 0.9 + number / 1000)] for number in range(7)}
    drawn = line_plot.plot(lines)
    assert [line["name"] for line in drawn["lines"]] == ["m0", "m1", "m2", "m3", "m4"]
    for line in drawn["lines"]:
        (x0, y0), (x1, y1) = line["points"]
        assert x0 < x1 <= line_plot.LINES_END
        assert y0 > y1  # places are from the top
    at = sorted(line["label_at"] for line in drawn["lines"])
    assert all(below - above >= line_plot.APART - 0.01 for above, below in itertools.pairwise(at))
    assert at[0] >= 0 and at[-1] <= 100


def test_a_band_goes_along_its_upper_end_and_back_along_the_lower():
    drawn = line_plot.plot({"m": [(0, 0.5), (1, 0.6)]}, {"m": [(0, 0.4, 0.6), (1, 0.5, 0.7)]})
    (line,) = drawn["lines"]
    xs = [x for x, _ in line["band"]]
    assert xs == [xs[0], xs[1], xs[1], xs[0]] and xs[0] < xs[1]
