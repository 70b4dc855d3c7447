from pipelines.reporting import tables


def test_rounds_are_wide_and_a_skipped_round_is_empty():
    curves = {
        "pppfl/x": [{"round": 0.0, "value": 0.1}, {"round": 3.0, "value": 0.4}],
        "dpsgd": [{"round": 0.0, "value": 0.2}, {"round": 2.0, "value": 0.3}],
        "local": [{"round": 0.0, "value": 0.9}],
    }
    assert tables.rounds(curves, "value") == [
        {"round": 0, "pppfl/x": 0.1, "dpsgd": 0.2},
        {"round": 2, "pppfl/x": None, "dpsgd": 0.3},
        {"round": 3, "pppfl/x": 0.4, "dpsgd": None},
    ]


def test_a_round_that_was_scored_and_not_fine_tuned_is_in_one_table_alone():
    curves = {
        "pppfl/x": [{"round": 0.0, "shared": 0.1}, {"round": 3.0, "shared": 0.2, "value": 0.4}]
    }
    assert tables.rounds(curves, "value") == [{"round": 3, "pppfl/x": 0.4}]
    assert [row["round"] for row in tables.rounds(curves, "shared")] == [0, 3]


def test_epsilon_has_a_row_per_client_and_generator(run):
    rows = tables.epsilon(run.summary())
    assert [(row["client"], row["generator"]) for row in rows] == [
        ("a", "datalens"),
        ("a", "dp_moments"),
        ("b", "datalens"),
        ("b", "dp_moments"),
    ]
    columns = ["dataset", "client", "generator", "epsilon", "tstr_accuracy", "tstr_accuracy_global"]
    assert list(rows[0]) == [*columns, "accuracy_before", "accuracy_after", "trust"]
    assert (rows[3]["epsilon"], rows[3]["accuracy_before"]) == (3.0, 0.4)


def test_methods_has_a_row_per_method(run):
    summary = run.summary()
    rows = {row["method"]: row for row in tables.methods(summary)}
    assert list(rows) == list(summary["methods"])
    assert rows["local"]["mean_accuracy"] == summary["methods"]["local"]["mean_accuracy"]
    assert (rows["local"]["delta"], rows["dpsgd"]["delta"]) == (None, 1e-5)


def test_a_column_of_test_selected_figures_says_so(run):
    row = tables.methods(run.summary())[0]
    assert (row["bmta_test_selected"], row["bmt_f1_test_selected"]) == (0.99, 0.98)
    assert not {"bmta", "bmt_f1"} & set(row)
    assert (row["selected_accuracy"], row["selected_round"]) == (0.66, 3)


def test_an_upper_bound_says_so_in_every_table_of_methods(run):
    run.bound("fedavg/datalens")
    summary = run.summary()
    assert [row["method"] for row in tables.methods(summary) if row["upper_bound"]] == [
        "fedavg/datalens"
    ]
    metrics = tables.metrics(summary)
    assert [name for name, entry in metrics.items() if "upper_bound_not_private" in entry] == [
        "fedavg/datalens"
    ]
    assert not any("not_private" in entry for entry in metrics.values())
    summary["methods"]["dpsgd"].update(guarantee="none", epsilon_max=float("inf"))
    assert [name for name, entry in tables.metrics(summary).items() if "not_private" in entry] == [
        "dpsgd"
    ]


def test_a_collapsed_model_says_so_in_every_table_of_methods(run):
    run.collapse("dpsgd")
    summary = run.summary()
    assert [row["method"] for row in tables.methods(summary) if row["collapsed"]] == ["dpsgd"]
    assert [name for name, entry in tables.metrics(summary).items() if "collapsed" in entry] == [
        "dpsgd"
    ]


def test_the_last_round_alone_is_still_a_row():
    curves = {"dpsgd": [{"round": 30.0, "value": 0.3}], "local": [{"round": 0.0, "value": 0.9}]}
    assert tables.rounds(curves, "value") == [{"round": 30, "dpsgd": 0.3}]
