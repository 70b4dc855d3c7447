"""Tests Table V and Figure 2, which compare runs of several variants on the same cells."""

import pytest
from kept_runs import method, newcomers, run

from experiments import variant_tables
from experiments.plans import of_images


@pytest.fixture
def of_table5() -> list[dict]:
    accuracy = {"1-5": (0.5, 0.7), "6-10": (0.6, 0.8), "inf": (0.9, 0.8)}
    score = {"1-5": 1.5, "6-10": 2.0, "inf": 3.0}
    return [
        run(
            0,
            {"pppfl/dp_moments": method(*values)},
            variant=of_images("dp_moments", group),
            fidelity={
                "judge_accuracy": 0.99,
                "inception_score_real": 9.0,
                "clients": {
                    "dp_moments": {
                        "c0": {"fid": 2.0, "fid_floor": 1.0, "inception_score": score[group]},
                        "c1": {"fid": 4.0, "fid_floor": 1.0, "inception_score": score[group] + 1},
                    }
                },
            },
        )
        for group, values in accuracy.items()
    ]


def test_table5_holds_each_group_against_infinite_epsilon(of_table5):
    first, second, last = variant_tables.table5(of_table5)
    assert [row["epsilon"] for row in (first, second, last)] == ["1-5", "6-10", "inf"]
    assert first["over_inf"] == pytest.approx(((0.5 - 0.9) + (0.7 - 0.8)) / 2)
    assert second["over_inf"] == pytest.approx(-0.15)
    assert last["over_inf"] is None
    assert (first["inception_score"], first["fid"], first["fid_floor"]) == (2.0, 3.0, 1.0)
    assert (first["published_inception_score"], first["published_fid"]) == (1.2242, 407.55)
    assert (first["published_bmta"], first["published_bmt_f1"]) == (0.8133, 0.7454)


def test_table5_without_infinite_epsilon_compares_nothing(of_table5):
    table = variant_tables.table5(of_table5[:2])
    assert [row["over_inf"] for row in table] == [None, None] and table[0][
        "accuracy"
    ] == pytest.approx(0.6)


def test_figure2_holds_each_variant_against_neither_stabiliser():
    accuracy = {
        "EMA": (0.6, 0.8),
        "EMA and cosine": (0.9, 0.9),
        "cosine": (0.5, 0.7),
        "neither": (0.5, 0.6),
    }
    rows = [
        run(
            0,
            {"pppfl/datalens": method(*values)},
            variant=of_images("datalens", name),
            query_per_round={"datalens": [0.1, values[0]]},
        )
        for name, values in accuracy.items()
    ]
    table = {row["stabilisers"]: row for row in variant_tables.figure2(rows)}
    assert list(table) == ["neither", "EMA", "cosine", "EMA and cosine"]
    assert table["neither"]["over_neither"] is None and table["neither"][
        "shared_accuracy"
    ] == pytest.approx(0.2)
    assert (
        table["EMA"]["over_neither"] == pytest.approx(0.15)
        and table["EMA"]["query_accuracy"] == 0.6
    )
    assert [table["EMA"][name] for name in ("selected_mean_accuracy", "bmta_test_selected")] == [
        0.8,
        0.9,
    ]
    assert table["EMA and cosine"]["over_neither"] == pytest.approx(0.35)


def test_newcomers_hold_each_model_against_an_untrained_one_and_pppfl_against_each():
    rows = [newcomers(0, {"pppfl": [0.6, 0.8], "fedavg": [0.7, 0.7], "random_init": [0.5, 0.5]})]
    rows += [newcomers(1, {"pppfl": [0.4, 0.6], "fedavg": [0.7, 0.7], "random_init": [0.3, 0.5]})]
    ours, fedavg, bar = variant_tables.newcomers(rows)
    assert [row["method"] for row in (ours, fedavg, bar)] == ["pppfl", "fedavg", "random_init"]
    assert all(row["cells"] == 4 and row["labels"] == 8 for row in (ours, fedavg, bar))
    assert ours["accuracy"] == pytest.approx(0.6) and ours["global_accuracy"] == pytest.approx(0.5)
    assert (
        ours["over_random_init"] == pytest.approx((0.1 + 0.3 + 0.1 + 0.1) / 4)
        and ours["pppfl_over_it"] is None
    )
    assert fedavg["pppfl_over_it"] == pytest.approx((-0.1 + 0.1 - 0.3 - 0.1) / 4)
    assert bar["over_random_init"] is None and bar["pppfl_over_it"] == pytest.approx(0.15)
    # over fedavg -0.1 and +0.1, then -0.3 and -0.1; a newcomer of another seed is another
    assert [row["pppfl_ahead"] for row in (ours, fedavg, bar)] == [None, "0/2", "2/2"]


def test_newcomers_of_runs_with_one_model_each_are_compared():
    rows = [newcomers(0, {"random_init": [0.5, 0.5]}), newcomers(0, {"pppfl": [0.5, 0.7]})]
    ours, bar = variant_tables.newcomers(rows)
    assert [row["method"] for row in (ours, bar)] == ["pppfl", "random_init"]
    assert ours["over_random_init"] == bar["pppfl_over_it"] == pytest.approx(0.1)
    assert [row["cells"] for row in (ours, bar)] == [2, 2]


def test_newcomers_costs_are_of_the_shared_training_where_all_runs_kept_them():
    rows = [newcomers(seed, {"pppfl": [0.5], "random_init": [0.4]}) for seed in (0, 1)]
    assert {row["bytes_up"] for row in variant_tables.newcomers(rows)} == {None}
    cost = {"bytes_up": 10, "bytes_down": 20, "seconds": 3.0}
    for factor, row in enumerate(rows, start=1):
        row["newcomers"]["costs"] = [
            {
                "algorithm": name,
                "client": "c0",
                **{field: factor * value for field, value in cost.items()},
            }
            for name in ("pppfl", "random_init")
        ]
    (first, _) = variant_tables.newcomers(rows)
    assert (first["bytes_up"], first["bytes_down"], first["seconds"]) == (15, 30, 4.5)
    del rows[0]["newcomers"]["costs"]
    assert variant_tables.newcomers(rows)[0]["bytes_up"] is None
