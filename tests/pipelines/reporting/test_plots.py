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


def test_the_interval_is_an_error_bar_and_there_is_none_where_there_is_no_interval(run):
    summary = run.summary()
    summary["methods"]["local"].update(mean_accuracy_low=None, mean_accuracy_high=None)
    bars = [line for line in plots.methods(summary).axes[0].lines if line.get_marker() == "|"]
    entries = [(name, entry) for name, entry in summary["methods"].items() if name != "local"]
    assert [list(line.get_xdata()) for line in bars] == [
        [entry["mean_accuracy_low"], entry["mean_accuracy_high"]] for _, entry in entries
    ]
    assert [line.get_label() for line in bars] == [f"interval of {name}" for name, _ in entries]


def test_an_upper_bound_is_marked_on_both_pictures(run):
    run.bound("fedavg/datalens")
    axes = plots.methods(run.summary()).axes[0]
    marked = [text.get_text() for text in axes.get_yticklabels() if "not private" in text.get_text()]
    assert marked == ["fedavg/datalens\n(upper bound, not private)"]
    assert [bool(bar.get_hatch()) for bar in axes.patches].count(True) == 1
    shared = plots.rounds(run.read()["curves"], run.params.synthesis.generators, ["fedavg/datalens"]).axes[0]
    assert "fedavg/datalens (upper bound, not private)" in [line.get_label() for line in shared.lines]


def test_a_method_of_which_the_last_round_alone_was_fine_tuned_still_has_rounds(run):
    curves = {method: rows[-1:] for method, rows in run.read()["curves"].items()}
    shared, _ = plots.rounds(curves, run.params.synthesis.generators).axes
    assert [list(line.get_xdata()) for line in shared.lines] == [[4]] * 5
