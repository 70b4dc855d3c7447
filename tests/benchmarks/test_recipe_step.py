"""The shortened schedules of the step benchmark keep all but the number of steps."""

from benchmarks import recipe_step
from pipelines import config


def test_only_the_number_of_steps_is_cut():
    shipped = config.load().training("mnist", "fine_tune")
    cut = recipe_step.short(shipped)
    for before, after in zip(shipped.replay.schedules, cut.replay.schedules, strict=True):
        assert after.steps == min(before.steps, recipe_step.STEPS)
        assert after.model_copy(update={"steps": before.steps}) == before


def test_a_row_has_the_ratio_of_its_two_times(monkeypatch):
    """Which of both is larger is for the benchmark to say: a test's machine has other work."""
    monkeypatch.setattr(recipe_step, "STEPS", 2)
    monkeypatch.setattr(recipe_step, "REPEATS", 1)
    row = recipe_step.measured(config.load(), "digits", 8)
    assert row["ratio"] == row["recipe_seconds"] / row["plain_seconds"]
    assert row["recipe_seconds"] > 0 and row["plain_seconds"] > 0
    assert (row["plain_steps"], row["recipe_steps"]) == (100, 300)
