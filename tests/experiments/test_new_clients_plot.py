from experiments import new_clients_plot


def line(*accuracies, low=None, high=None):
    """Returns a line with these accuracies at 0, 8 and 16 labels."""
    counts = (0, 8, 16)
    point = {"low": low, "high": high}
    return {count: {"accuracy": value, **point} for count, value in zip(counts, accuracies)}


def test_a_panel_per_generator_a_line_per_algorithm_and_a_band_where_there_is_an_interval():
    lines = {
        "pppfl": line(0.2, 0.5, 0.6, low=0.1, high=0.7),
        "fedavg": line(0.2, 0.4, 0.6, low=0.1, high=0.7),
        "random_init": line(0.1, 0.2, 0.3, low=0.1, high=0.4),
    }
    found = {}
    for generator in ("datalens", "dp_moments"):
        found[generator] = {
            f"pppfl/{generator}": lines["pppfl"],
            f"fedavg/{generator}": lines["fedavg"],
            "random_init": lines["random_init"],
        }
    figure = new_clients_plot.new_clients(found)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "Models from datalens",
        "Models from dp_moments",
    ]
    axes = figure.axes[0]
    assert [line.get_label() for line in axes.lines] == ["pppfl", "fedavg", "random_init"]
    assert list(axes.lines[0].get_xdata()) == [4, 8, 16]  # 0 stands at half the smallest
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "8", "16"]
    assert axes.get_xscale() == "log"
    assert list(axes.lines[0].get_ydata()) == [
        entry["accuracy"] for entry in found["datalens"]["pppfl/datalens"].values()
    ]
    assert len(axes.collections) == 3
    for points in found["datalens"].values():
        for entry in points.values():
            entry.update(low=None, high=None)
    assert len(new_clients_plot.new_clients(found).axes[0].collections) == 0


def test_a_method_looks_the_same_in_panels_that_lack_others():
    one = {8: {"accuracy": 0.5, "low": None, "high": None}}
    points = {"x": {"pooled/x": one}, "y": {"pppfl/y": one, "fedavg/y": one, "pooled/y": one}}
    figure = new_clients_plot.new_clients(points)
    looks = [
        {drawn.get_label(): (drawn.get_marker(), drawn.get_linestyle()) for drawn in axes.lines}
        for axes in figure.axes
    ]
    assert looks[0]["pooled"] == looks[1]["pooled"] and len(set(looks[1].values())) == 3
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "pooled",
        "pppfl",
        "fedavg",
    ]
