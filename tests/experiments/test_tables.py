"""Tables from hand-made runs whose means are known."""

import pytest
from kept_runs import method, run

from experiments import pages, paper_figures, summaries, tables

SELECTED = ("selected_mean_accuracy", "bmta_test_selected", "bmt_f1_test_selected")


def without(rows: list[dict], method: str) -> list[dict]:
    return [
        {**row, "methods": {k: v for k, v in row["methods"].items() if k != method}} for row in rows
    ]


def line(table: list[dict], **of) -> dict:
    (found,) = [row for row in table if all(row[name] == value for name, value in of.items())]
    return found


def test_means_and_paired_differences_are_over_seeds_and_clients(of_table2):
    table = tables.table2(of_table2)
    ours = line(table, method="pppfl")
    assert ours["cells"] == 4 and ours["generator"] == "dp_moments"
    assert ours["accuracy"] == pytest.approx((0.9 + 0.8 + 0.8 + 0.9) / 4)
    assert ours["macro_f1"] == pytest.approx(ours["accuracy"] - 0.1)
    assert ours["over_local"] == pytest.approx(0.2)
    assert 0.099 < ours["over_local_low"] < 0.2 < ours["over_local_high"] < 0.401
    assert ours["bmta_test_selected"] == 0.9 and "bmta" not in ours
    assert (ours["published_bmt_f1"], ours["published_bmta"]) == paper_figures.TABLE2["pppfl"][
        "mnist"
    ]


def test_the_gain_over_the_same_fine_tuning_of_an_untrained_model_stands_beside(of_table2):
    """`local` may train for longer than any method is fine-tuned."""
    table = tables.table2(of_table2)
    assert line(table, method="pppfl")["over_random_init"] == pytest.approx(
        (0.4 + 0.2 + 0.1 + 0.5) / 4
    )
    assert line(table, method="local")["over_random_init"] == pytest.approx((0.3 + 0 + 0 + 0.1) / 4)
    assert line(table, method="random_init")["over_random_init"] is None
    assert (
        line(tables.table2(without(of_table2, "random_init")), method="pppfl")["over_random_init"]
        is None
    )


def test_worst_and_spread_are_of_a_runs_clients_then_over_seeds(of_table2):
    ours = line(tables.table2(of_table2), method="pppfl")  # .9 .8; .8 .9
    assert ours["worst"] == pytest.approx(0.8) and ours["spread"] == pytest.approx(0.05)
    alone = line(tables.table2(of_table2), method="local")  # .8 .6; .7 .5
    assert alone["worst"] == pytest.approx((0.6 + 0.5) / 2) and alone["spread"] == pytest.approx(
        0.1
    )


def test_where_one_round_was_scored_nothing_is_called_selected(of_table2):
    """The last round's figure under the name of BMTA would read as the paper's largest of thirty."""
    first, second = of_table2
    entry = second["methods"]["pppfl/dp_moments"] | {"candidates": 1}
    once = [first, {**second, "methods": second["methods"] | {"pppfl/dp_moments": entry}}]
    for rows, told in ((of_table2, (0.8, 0.9, 0.85)), (once, (None, None, None))):
        ours = line(tables.table2(rows), method="pppfl")
        assert tuple(ours[name] for name in SELECTED) == told


def test_the_papers_figure_stands_beside_its_own_setting_too(of_table2):
    rows = [
        {
            **row,
            "methods": row["methods"]
            | {"pppfl_paper/dp_moments": row["methods"]["pppfl/dp_moments"]},
        }
        for row in of_table2
    ]
    assert line(tables.table2(rows), method="pppfl_paper")["published_bmta"] == 0.964


def test_what_cannot_be_told_is_empty(of_table2):
    table = tables.table2(of_table2)
    assert line(table, method="local")["over_local"] is None
    same = line(table, method="fedavg")
    assert same["over_local"] == 0 and same["over_local_low"] is None
    assert same["seconds"] is None
    assert line(table, method="own_synthetic")["published_bmta"] is None


def test_an_upper_bound_says_what_it_is(of_table2):
    real = line(tables.table2(of_table2), method="fedavg_real")
    assert (
        real["upper_bound"] and real["guarantee"] == "none" and real["epsilon_max"] == float("inf")
    )


def test_cells_of_other_data_sets_are_apart(of_table2):
    other = [{**row, "dataset": "fashion_mnist"} for row in of_table2[:1]]
    table = tables.table2([*of_table2, *other])
    assert line(table, method="pppfl", dataset="fashion_mnist")["cells"] == 2
    assert line(table, method="pppfl", dataset="mnist")["cells"] == 4


def test_pairs_are_the_cells_that_both_have():
    one, other = {(0, "c0"): 0.5, (0, "c1"): 0.9, (1, "c0"): 0.1}, {(0, "c0"): 0.4, (0, "c1"): 0.6}
    assert summaries.paired(one, other, "any").value == pytest.approx(0.2)


def test_equal_differences_have_no_interval_of_no_width():
    one, other = {(0, "c0"): 0.3, (0, "c1"): 0.9}, {(0, "c0"): 0.1, (0, "c1"): 0.7}
    assert one[0, "c0"] - other[0, "c0"] != one[0, "c1"] - other[0, "c1"]  # in floats
    assert summaries.paired(one, other, "any") == (pytest.approx(0.2), None, None)


def test_table4_takes_each_flow_from_its_method_and_moment(of_table2):
    table = tables.table4(of_table2)
    accuracy = {row["flow"]: row["accuracy"] for row in table}
    assert accuracy == pytest.approx(
        {
            "local, secret / secret": 0.65,
            "local, synthetic / secret": 0.25,
            "collaborative, synthetic / secret": 0.4,
            "collaborative, synthetic + fine-tuning / secret": 0.65,
            "collaborative, secret / secret": 0.95,
        }
    )
    assert set(accuracy) == set(paper_figures.TABLE4)
    row = line(table, flow="local, synthetic / secret")
    assert (row["published_bmt_f1"], row["published_bmta"]) == (0.3021, 0.3371)
    assert row["over_local"] == pytest.approx(0.25 - 0.65)


def test_figure4_pairs_each_cells_gain_with_its_local_accuracy(of_table2):
    row, untrained = tables.figure4(of_table2)
    assert row["n"] == 4 and row["generator"] == "dp_moments" and row["base"] == "local"
    # local .8 .6 .7 .5 gains .1 .2 .1 .4: ranks 4 2 3 1 against 1.5 3 1.5 4
    assert row["spearman"] == pytest.approx(-0.9486833) and row["published_spearman"] == -0.9
    # random_init .5 .6 .7 .4 gains .4 .2 .1 .5
    assert untrained["base"] == "random_init" and untrained["spearman"] == pytest.approx(-1)
    assert untrained["published_spearman"] is None


def test_no_published_figure_is_an_accuracy_above_one():
    for table in (paper_figures.TABLE2, paper_figures.TABLE3, paper_figures.TABLE4):
        for row in table.values():
            assert all(
                0 < value < 1 for figures in row.values() for value in figures if value is not None
            )


@pytest.mark.parametrize("build", [tables.table2, tables.table4, tables.figure4])
def test_a_run_per_generator_makes_the_table_of_one_run_with_both(build, of_table2):
    """Methods without a generator stand in one of the two runs, and all are compared with them."""

    def renamed(row: dict) -> dict:
        changed = {
            name.replace("dp_moments", "datalens"): entry for name, entry in row["methods"].items()
        }
        return {name: entry for name, entry in changed.items() if "/" in name}

    together = [{**row, "methods": row["methods"] | renamed(row)} for row in of_table2]
    apart = [
        *of_table2,
        *({**row, "variant": "datalens", "methods": renamed(row)} for row in of_table2),
    ]
    assert build(apart) == build(together)
    assert {row["generator"] for row in build(apart)} >= {"dp_moments", "datalens"}


def test_pppfl_stands_against_each_rival_on_the_same_images(of_table2):
    table = tables.table2(of_table2)
    assert line(table, method="pppfl")["pppfl_over_it"] is None
    assert line(table, method="fedavg")["pppfl_over_it"] == pytest.approx(
        0.2
    )  # FedAvg has what local has
    assert line(table, method="random_init")["pppfl_over_it"] == pytest.approx(
        (0.4 + 0.2 + 0.1 + 0.5) / 4
    )


def test_of_two_generators_pppfl_is_held_against_what_learnt_from_the_same(of_table2):
    (first, second) = of_table2
    entries = {
        name.replace("dp_moments", "datalens"): own
        for name, own in second["methods"].items()
        if "/" in name
    }
    table = tables.table2([first, {**second, "variant": "datalens", "methods": entries}])
    over = {row["generator"]: row["pppfl_over_it"] for row in table if row["method"] == "fedavg"}
    assert over == {"dp_moments": pytest.approx(0.15), "datalens": pytest.approx(0.25)}
    assert line(table, method="local")["pppfl_over_it"] is None


def test_a_difference_is_told_in_each_seed_by_itself():
    rows = [
        run(
            seed,
            {"pppfl/datalens": method(0.6, 0.7), "fedavg/datalens": method(0.5 + seed / 10, 0.7)},
        )
        for seed in (0, 2)
    ]
    (entry,) = [row for row in tables.table2(rows) if row["method"] == "fedavg"]
    assert entry["pppfl_by_seed"] == "+0.050, -0.050"
    assert entry["pppfl_over_it"] == pytest.approx(0.0)


def test_what_is_read_without_class_shares_has_a_column_of_its_own():
    rows = [run(0, {"pppfl/datalens": method(0.6, 0.7)})]
    for client in rows[0]["methods"]["pppfl/datalens"]["clients"].values():
        client["global_elsewhere"] = 0.4
    table = tables.table2(rows)
    assert [row["global_elsewhere"] for row in table] == pytest.approx([0.4])
    header = "there without own class shares"
    assert header in pages.page("t", "T", [], pages.METHODS, table, {"mnist": [0]})


def test_what_earlier_runs_did_not_keep_is_no_figure_and_no_column():
    rows = [run(0, {"pppfl/datalens": method(0.6, 0.7), "fedavg/datalens": method(0.5, 0.7)})]
    table = tables.table2(rows)
    assert [row["global_after"] for row in table] == pytest.approx([0.1, 0.1])
    header = "after it, global test set"
    assert header in pages.page("t", "T", [], pages.METHODS, table, {"mnist": [0]})
    # earlier runs have not stored what is read without class shares
    assert {row["global_elsewhere"] for row in table} == {None}
    for client in rows[0]["methods"]["fedavg/datalens"]["clients"].values():
        del client["global_after"]
    table = tables.table2(rows)
    assert [row["global_after"] for row in table] == [pytest.approx(0.1), None]
    page = pages.page(
        "t",
        "T",
        [],
        pages.METHODS,
        [row for row in table if row["method"] == "fedavg"],
        {"mnist": [0]},
    )
    assert header not in page and "before it, global test set" in page
