import pytest

from pipelines import paths
from pipelines.evaluation import intervals
from pipelines.reporting import new_clients, tables


def points(run):
    return new_clients.points(run.read()["new_clients"], run.params.seed)


def rewrite(run, algorithm, labels, values):
    """Gives the algorithm's cells with that many labels these accuracies, in order of client and
    draw.
    """

    def change(content):
        cells = [
            cell
            for cell in content["cells"]
            if (cell["algorithm"], cell["labels"]) == (algorithm, labels)
        ]
        for cell, value in zip(cells, values, strict=True):
            cell["accuracy"] = value

    run.edit(paths.new_clients("digits", "datalens") / "results.json", change)


def test_a_point_is_the_mean_over_cells_with_its_interval(run):
    found = points(run)["datalens"]
    assert list(found) == ["pppfl/datalens", "fedavg/datalens", "random_init"]
    assert [list(line) for line in found.values()] == [[0, 8, 16]] * 3  # nobody had 64
    point = found["pppfl/datalens"][
        8
    ]  # 0.16 + 0.3, and 0.01, 0.02, 0.03 for the draws of both clients
    assert (point["accuracy"], point["global_accuracy"], point["cells"]) == (
        pytest.approx(0.48),
        pytest.approx(0.24),
        6,
    )
    cells = {(draw, client): 0.46 + draw / 100 for draw in (1, 2, 3) for client in "ab"}
    expected = intervals.over_cells(cells, seed=0)
    assert (point["low"], point["high"]) == pytest.approx(expected[1:], abs=0.003)
    without = found["pppfl/datalens"][0]
    assert (without["cells"], without["low"], without["high"]) == (
        2,
        None,
        None,
    )  # too few to tell of an interval


def test_the_differences_are_paired_cell_by_cell(run):
    rewrite(run, "pppfl", 8, [0.5, 0.1, 0.9, 0.5, 0.1, 0.9])
    rewrite(run, "random_init", 8, [0.4, 0.05, 0.75, 0.4, 0.05, 0.75])
    entry = run.summary()["new_clients"]["datalens"][0]
    assert (entry["method"], entry["rival"], entry["labels"]) == (
        "pppfl/datalens",
        "random_init",
        8,
    )
    assert entry["difference"] == pytest.approx(0.1)
    assert (
        0.05 < entry["low"] < 0.1 < entry["high"] < 0.15
    )  # unpaired it would be half a point of accuracy wide
    assert entry["differing"] == 6


def test_the_sentence_says_it_either_way_and_tells_equal_verdicts_once(run):
    for labels, fedavg in (
        (8, [0.5, 0.7, 0.6, 0.5, 0.7, 0.6]),
        (16, [0.3, 0.2, 0.5, 0.1, 0.4, 0.3]),
    ):
        rewrite(run, "random_init", labels, [0.1, 0.12, 0.14, 0.1, 0.12, 0.14])
        rewrite(run, "pppfl", labels, [0.2, 0.3, 0.4, 0.2, 0.3, 0.4])
        rewrite(run, "fedavg", labels, fedavg)
    first, second = new_clients.sentences(run.summary()["new_clients"])
    assert first == (
        "pppfl/datalens is ahead of random_init with 8, 16 labels; is behind fedavg/datalens with 8 labels; "
        "shows no difference to fedavg/datalens with 16 labels."
    )
    assert second.startswith(
        "pppfl/dp_moments shows no difference to random_init with 8, 16 labels"
    )  # all cells alike


def test_a_rival_that_did_not_run_is_not_compared(run):
    path = paths.new_clients("digits", "datalens") / "results.json"
    run.edit(path, lambda content: content.update(algorithms=["pppfl", "random_init"]))
    assert {entry["rival"] for entry in run.summary()["new_clients"]["datalens"]} == {"random_init"}
    run.edit(path, lambda content: content.update(algorithms=["random_init"]))
    assert run.summary()["new_clients"]["datalens"] == []
    assert len(new_clients.sentences(run.summary()["new_clients"])) == 1


def test_the_table_has_a_row_per_number_of_labels_and_random_init_once(run):
    rows = tables.new_clients(points(run))
    assert [row["labels"] for row in rows] == [0, 8, 16]
    names = [
        "pppfl/datalens",
        "fedavg/datalens",
        "random_init",
        "pppfl/dp_moments",
        "fedavg/dp_moments",
    ]
    assert list(rows[1]) == [
        "labels",
        *(f"{name}{end}" for name in names for end in ("", "_low", "_high")),
    ]
    assert rows[2]["fedavg/dp_moments"] == pytest.approx(0.44)
    assert tables.new_clients({}) == []
