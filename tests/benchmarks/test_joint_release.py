"""Tests what a row of the benchmark of joint releases compares."""

import numpy as np
import pytest

from benchmarks import joint_release
from benchmarks.joint_release import Case
from benchmarks.recipe_step import pictures
from pipelines import config
from pipelines.synthesis import joint_moments

PARAMS = config.load()
MIXED = [1.0, 1.0, 1.0, 10.0, 10.0, 10.0]
PARTS = [pictures(PARAMS, "digits", 30) for _ in MIXED]


def case(kind: str, epsilons: list[float] = MIXED, trusting: bool = True) -> Case:
    return Case(PARAMS, "digits", epsilons, kind, trusting, records=None)


@pytest.mark.parametrize("records", [None, 40])
def test_parts_are_disjoint_have_label_skew_and_the_asked_mean(records):
    images = pictures(PARAMS, "digits", 500)
    parts = joint_release.dealt(images, 5, records, np.random.default_rng(0))
    assert sum(map(len, parts)) == 5 * (records or 100)
    ids = np.concatenate([part.ids for part in parts])
    assert len(set(ids.tolist())) == len(ids)
    # of an even deal, no class of ten has a quarter of a client's records
    largest = [np.bincount(part.labels).max() / len(part) for part in parts]
    assert np.median(largest) > 0.25


@pytest.mark.parametrize("kind", ["own", "joint", "groups"])
def test_each_kind_of_release_has_equally_many_images(kind):
    images = case(kind).released(PARTS, seed=0)
    assert len(images) == 6 * (5 * PARAMS.profiles["digits"].images // 6)


def test_groups_have_the_budget_that_each_of_them_asked_for(monkeypatch):
    asked = {}
    plan = joint_moments.plan_together

    def noting(settings, budget, space, group):
        asked[kind].append((budget.epsilon, group.clients, group.colluding))
        return plan(settings, budget, space, group)

    monkeypatch.setattr(joint_moments, "plan_together", noting)
    for kind in ("joint", "groups"):
        asked[kind] = []
        case(kind).released(PARTS, seed=0)
    assert asked == {"joint": [(1.0, 6, 3)], "groups": [(1.0, 3, 1), (10.0, 3, 1)]}


def test_a_row_is_known_by_what_it_follows_from():
    keys = [
        case("own").key,
        case("joint").key,
        case("joint", trusting=False).key,
        case("joint", [1.0] * 6).key,
        Case(PARAMS, "digits", MIXED, "joint", True, records=100).key,
    ]
    assert case("joint").key == keys[1]
    assert len({str(key) for key in keys}) == len(keys)


def test_longer_training_has_rows_of_its_own(monkeypatch):
    longer = Case(PARAMS, "digits", MIXED, "joint", True, None, is_longer=True)
    assert longer.key != case("joint").key
    seen = []

    def on_synthetic(images, profile, settings, seed):
        seen.append(settings)

    monkeypatch.setattr(joint_release.classifier, "on_synthetic", on_synthetic)
    for one in (case("own"), longer):
        one.trained(PARTS, seed=0)
    shipped = PARAMS.training("digits", "pooled")
    assert seen[0] == shipped
    assert (seen[1].steps, seen[1].learning_rate) == (
        4 * shipped.steps,
        shipped.learning_rate / 2,
    )


def test_runs_that_are_stored_are_not_made_again(monkeypatch, tmp_path):
    monkeypatch.setattr(Case, "trained", lambda self, parts, seed: seed)
    monkeypatch.setattr(joint_release, "scores", lambda model, test: {"accuracy": model / 10})
    row = joint_release.measured(case("own"), [0, 1, 2], tmp_path, done=[0.5, 0.6])
    assert row["runs"] == [0.5, 0.6, 0.2]
    assert row["accuracy"] == pytest.approx(1.3 / 3)


def test_seeds_that_a_row_could_not_tell_apart_are_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["joint_release", "--seeds", "1", "2"])
    with pytest.raises(SystemExit):
        joint_release.main()
    assert "--seeds must be 0, 1, 2 and so on" in capsys.readouterr().err
