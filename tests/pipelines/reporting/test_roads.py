"""Tests the table of roads: every road that ran, in one order, with the methods' own figures."""

from pipelines.reporting import findings


def test_roads_stand_in_order_with_what_a_client_hands_out(run):
    summary = run.summary()
    found = findings.roads(summary, ["datalens", "dp_moments"], ["dpsgd", "nbafl"])
    assert [(row["method"], row["hands_out"]) for row in found] == [
        ("pppfl/datalens", findings.IMAGES),
        ("pppfl/dp_moments", findings.IMAGES),
        ("dpsgd", findings.MODEL),
        ("local", findings.NOTHING),
    ], "pooled and nbafl did not run"
    assert all(row["entry"] is summary["methods"][row["method"]] for row in found)
