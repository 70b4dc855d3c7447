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


def test_epsilon_has_a_row_per_client_and_generator(run):
    rows = tables.epsilon(run.summary())
    assert [(row["client"], row["generator"]) for row in rows] == [
        ("a", "datalens"),
        ("a", "dp_moments"),
        ("b", "datalens"),
        ("b", "dp_moments"),
    ]
    columns = ["dataset", "client", "generator", "epsilon", "tstr_accuracy", "tstr_accuracy_global"]
    assert list(rows[0]) == [*columns, "accuracy_before", "accuracy_after"]
    assert (rows[3]["epsilon"], rows[3]["accuracy_before"]) == (3.0, 0.4)


def test_methods_has_a_row_per_method(run):
    summary = run.summary()
    rows = {row["method"]: row for row in tables.methods(summary)}
    assert list(rows) == list(summary["methods"])
    assert rows["local"]["mean_accuracy"] == summary["methods"]["local"]["mean_accuracy"]
    assert (rows["local"]["delta"], rows["dpsgd"]["delta"]) == (None, 1e-5)
