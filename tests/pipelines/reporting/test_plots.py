from pipelines.reporting import plots


def test_a_row_per_generator_a_line_per_method_with_rounds_and_a_level_line_for_the_others(run):
    read, generators = run.read(), run.params.synthesis.generators
    panels = plots.rounds(read["curves"], generators, run.summary()["methods"]).axes
    for generator, shared, home in zip(generators, panels[::2], panels[1::2], strict=True):
        names = [
            name for name in read["curves"] if name.endswith(f"/{generator}") or name == "dpsgd"
        ]
        assert [line.get_label() for line in shared.lines] == [
            name.partition("/")[0] for name in names
        ]
        for line, name in zip(shared.lines, names):
            assert list(line.get_ydata()) == [
                row["global_accuracy"] for row in read["curves"][name]
            ]
        assert [list(line.get_ydata()) for line in home.lines[-2:]] == [[0.7, 0.7]] * 2
    assert list(panels[0].lines[0].get_xdata()) == [0, 2, 3, 4]
    assert list(panels[0].lines[0].get_ydata()) == [0.0, 0.2, 0.3, 0.4]
    assert list(panels[1].lines[0].get_xdata()) == [0, 3, 4]


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
    marked = [
        text.get_text() for text in axes.get_yticklabels() if "not private" in text.get_text()
    ]
    assert marked == ["fedavg/datalens\n(upper bound, not private)"]
    assert [bool(bar.get_hatch()) for bar in axes.patches].count(True) == 1
    panels = plots.rounds(
        run.read()["curves"], run.params.synthesis.generators, run.summary()["methods"]
    ).axes[::2]
    bounds = [
        line.get_label()
        for shared in panels
        for line in shared.lines
        if "not private" in line.get_label()
    ]
    assert bounds == ["fedavg (upper bound, not private)"]


def test_what_has_no_guarantee_is_marked_on_both_pictures(run):
    summary = run.summary()
    summary["methods"]["pppfl/datalens"].update(guarantee="none", epsilon_max=float("inf"))
    labels = [text.get_text() for text in plots.methods(summary).axes[0].get_yticklabels()]
    assert [label for label in labels if "NOT PRIVATE" in label] == [
        "pppfl/datalens\n(NOT PRIVATE)"
    ]
    drawn = plots.rounds(run.read()["curves"], run.params.synthesis.generators, summary["methods"])
    lines = [line.get_label() for shared in drawn.axes[::2] for line in shared.lines]
    assert [label for label in lines if "NOT PRIVATE" in label] == ["pppfl (NOT PRIVATE)"]


def test_a_method_of_which_the_last_round_alone_was_fine_tuned_still_has_rounds(run):
    curves = {method: rows[-1:] for method, rows in run.read()["curves"].items()}
    for shared in plots.rounds(
        curves, run.params.synthesis.generators, run.summary()["methods"]
    ).axes[::2]:
        assert [list(line.get_xdata()) for line in shared.lines] == [[4]] * 3
