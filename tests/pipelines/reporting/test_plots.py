from pipelines.reporting import plots


def test_a_line_per_method_with_rounds_and_a_level_line_for_the_others(run):
    read = run.read()
    shared, home = plots.rounds(read["curves"], run.params.synthesis.generators).axes
    assert [line.get_label() for line in shared.lines] == [
        name for name in read["curves"] if "/" in name or name == "dpsgd"
    ]
    assert list(shared.lines[0].get_xdata()) == [0, 3, 4]
    assert list(shared.lines[0].get_ydata()) == [0.0, 0.3, 0.4]
    assert [list(line.get_ydata()) for line in home.lines[-2:]] == [[0.7, 0.7]] * 2


def test_the_bars_are_the_means_and_the_diamonds_the_worst_clients(run):
    summary = run.summary()
    axes = plots.methods(summary).axes[0]
    assert [bar.get_width() for bar in axes.patches] == [
        entry["mean_accuracy"] for entry in summary["methods"].values()
    ]
    worst = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert worst == [entry["worst_accuracy"] for entry in summary["methods"].values()]
