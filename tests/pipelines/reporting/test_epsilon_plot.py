import sys

import pytest

from pipelines import paths
from pipelines.reporting import canvas, epsilon_plot

INF = float("inf")


def test_equal_epsilons_stand_side_by_side_and_infinity_to_the_right():
    places = epsilon_plot.places([("a", 10.0), ("b", 10.0), ("c", 3.0), ("d", INF), ("a", 10.0)])
    assert places["c", 3.0] == 3.0
    assert places["a", 10.0] < 10.0 < places["b", 10.0] < places["d", INF]
    assert places["a", 10.0] * places["b", 10.0] == pytest.approx(100.0)


def test_a_release_without_privacy_stands_at_infinity_and_not_at_the_budget(run):
    path = paths.synthetic("digits", "a", "datalens") / "card.json"
    run.edit(path, lambda card: card["privacy"].update(epsilon="inf", mu="inf", guarantee="none"))
    alone, home = epsilon_plot.epsilon(run.summary()).axes
    assert sorted(tick.get_text() for tick in alone.get_xticklabels()) == ["10", "3", "∞"]
    datalens = alone.lines[0].get_xdata()
    assert (datalens[0], datalens[1]) == (30.0, 3.0)
    assert len(home.lines) == len(alone.lines) + 1  # dpsgd hands out no images


def test_missing_scores_leave_a_gap(run):
    path = paths.quality("digits", "a", "datalens") / "quality.json"
    run.edit(path, lambda content: content.update(tstr_accuracy_global=float("nan")))
    assert epsilon_plot.epsilon(run.summary()).axes


def test_the_same_numbers_give_the_same_bytes_and_no_global_state(run, tmp_path):
    summary = run.summary()
    for name in ("one.png", "two.png"):
        canvas.save(epsilon_plot.epsilon(summary), tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    assert (
        "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    )
