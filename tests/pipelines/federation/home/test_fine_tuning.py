from functools import partial

import numpy as np
import pytest

from models import classifiers
from pipelines.config.training import FineTune, Replay
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard
from pipelines.evaluation.scoring import predictions, scores
from pipelines.federation.home import fine_tuning, personal
from pipelines.training import classifier
from pipelines.training.pool import Pool
from pipelines.training.tensors import state_of, with_state

BUILD = partial(classifiers.build, "mlp", shape=(4, 4, 1), classes=2, seed=0)
SETTINGS = FineTune(epochs=20, batch=8, learning_rate=0.01, patience=20, every=2, shared_every=None)


def images(count, seed):
    """Returns images of which the bright ones are class 1. This is learnable in a few steps."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    pixels = rng.integers(0, 100, (count, 4, 4, 1)) + labels[:, None, None, None] * 120
    return Images(pixels.astype(np.uint8), labels, np.arange(count))


SHARDS = {
    name: Shard(images(40, i), images(20, i + 10), images(30, i + 20))
    for i, name in enumerate("ab")
}
EVERYONE = images(50, 99)


def test_fine_tuning_helps_and_leaves_the_initial_model_alone():
    initial = state_of(BUILD())
    before = {name: array.copy() for name, array in initial.items()}
    homes = fine_tuning.at_home(
        dict.fromkeys(SHARDS, initial), SHARDS, EVERYONE, build=BUILD, settings=SETTINGS, seed=0
    )
    assert all(np.array_equal(initial[name], before[name]) for name in initial)
    for client in SHARDS:
        assert (
            homes.results[client]["after"]["accuracy"]
            > 0.9
            > homes.results[client]["before"]["accuracy"]
        )
        assert not np.array_equal(homes.personal[client].arrays["1.weight"], initial["1.weight"])
    assert homes.seconds > 0


def test_each_client_starts_from_its_own_model_and_answers_for_its_own_parts():
    settings = SETTINGS.model_copy(
        update={"epochs": 1, "learning_rate": 1e-9}
    )  # what comes in goes out
    own = {
        name: state_of(classifiers.build("mlp", shape=(4, 4, 1), classes=2, seed=i))
        for i, name in enumerate("ab")
    }
    homes = fine_tuning.at_home(own, SHARDS, EVERYONE, build=BUILD, settings=settings, seed=0)
    for client, shard in SHARDS.items():
        model = with_state(BUILD(), own[client])
        assert np.allclose(
            homes.personal[client].arrays["1.weight"], own[client]["1.weight"], atol=1e-6
        )
        assert homes.results[client]["validation"] == scores(model, shard.validation)["accuracy"]
        assert homes.correct[client].dtype == bool
        assert np.array_equal(
            homes.correct[client], predictions(model, shard.test) == shard.test.labels
        )
        assert homes.correct[client].mean() == homes.results[client]["after"]["accuracy"]


#            round: (test accuracy of a, of b, validation accuracy)
BY_ROUND = {0: (0.99, 0.99, 1.0), 2: (0.7, 0.6, 0.8), 4: (0.9, 0.8, 0.7), 5: (0.8, 0.75, 0.8)}


def outcome(
    monkeypatch, rounds: int, every: int | None, shared_every: int | None = None
) -> fine_tuning.Outcome:
    """Returns the results of models whose scores are those of BY_ROUND."""

    def entry(accuracy, validation):
        both = {"accuracy": accuracy, "macro_f1": accuracy - 0.1}
        return {"before": both, "after": both, "validation": validation, "global_before": 0.5}

    def at_home(initial, *args, **kwargs):
        number = int(initial["a"]["round"])
        a, b, validation = BY_ROUND[number]
        results = {"a": entry(a, validation), "b": entry(b, validation)}
        return fine_tuning.Homes(results, initial, {"a": np.array([number == 5])}, seconds=number)

    monkeypatch.setattr(fine_tuning, "at_home", at_home)
    models = [{"round": np.array(number)} for number in range(rounds + 1)]
    settings = SETTINGS.model_copy(update={"every": every, "shared_every": shared_every})
    return fine_tuning.through_rounds(
        models, SHARDS, EVERYONE, build=BUILD, settings=settings, seed=0
    )


def test_the_result_is_the_last_round_and_bmta_the_best_over_trained_rounds(monkeypatch):
    found = outcome(monkeypatch, rounds=5, every=2)
    assert [row["round"] for row in found.curve] == [0, 2, 4, 5]
    assert found.summary["clients"]["a"]["after"]["accuracy"] == 0.8
    assert int(found.personal["a"]["round"]) == 5
    assert (found.correct["a"].tolist(), found.seconds) == ([True], 5)
    assert found.summary["bmta"] == pytest.approx(0.85)  # round 0 is no trained model
    assert found.summary["bmt_f1"] == pytest.approx(0.75)


def test_the_selected_round_is_the_earliest_best_by_validation_and_never_by_test(monkeypatch):
    """Round 0 is best on both, round 4 on test among the trained; 2 and 5 are equal on validation."""
    found = outcome(monkeypatch, rounds=5, every=2)
    assert found.summary["selected"] == pytest.approx(
        {"round": 2, "mean_accuracy": 0.65, "worst": 0.6, "macro_f1": 0.55}
    )
    assert found.summary["candidates"] == 3
    assert [row["accuracy_validation"] for row in found.curve] == pytest.approx(
        [1.0, 0.8, 0.7, 0.8]
    )


def test_without_every_the_last_round_alone_is_fine_tuned_and_is_all_there_is_to_select(
    monkeypatch,
):
    found = outcome(monkeypatch, rounds=5, every=None)
    assert [row["round"] for row in found.curve] == [5]
    assert found.summary["candidates"] == 1
    assert found.summary["selected"]["round"] == 5
    assert (
        found.summary["bmta"] == found.summary["selected"]["mean_accuracy"] == pytest.approx(0.775)
    )


def test_rounds_between_have_what_their_shared_model_is_worth_and_select_nothing(monkeypatch):
    monkeypatch.setattr(
        fine_tuning,
        "on_everyone",
        lambda initial, *a, **k: {c: int(initial[c]["round"]) for c in "ab"},
    )
    found = outcome(monkeypatch, rounds=5, every=None, shared_every=2)
    assert found.curve[:3] == [{"round": number, "global_accuracy": number} for number in (0, 2, 4)]
    assert (
        found.curve[3]["round"] == 5
        and found.summary == outcome(monkeypatch, rounds=5, every=None).summary
    )
    tuned = outcome(monkeypatch, rounds=5, every=4, shared_every=2).curve
    assert [("accuracy_after" in row, row["round"]) for row in tuned] == [
        (True, 0),
        (False, 2),
        (True, 4),
        (True, 5),
    ]


def test_a_model_is_scored_once_for_all_who_start_from_it(monkeypatch):
    model, other, scored = state_of(BUILD()), state_of(BUILD()), []
    real = fine_tuning.scores
    monkeypatch.setattr(fine_tuning, "scores", lambda *given: scored.append(given) or real(*given))
    found = fine_tuning.on_everyone({"a": model, "b": model, "c": other}, EVERYONE, build=BUILD)
    assert len(scored) == 2 and found == dict.fromkeys("abc", real(BUILD(), EVERYONE)["accuracy"])


@pytest.mark.parametrize("every", [2, None])
def test_a_method_without_rounds_has_one_row(every):
    settings = SETTINGS.model_copy(update={"every": every})
    found = fine_tuning.through_rounds(
        [state_of(BUILD())], SHARDS, EVERYONE, build=BUILD, settings=settings, seed=0
    )
    assert len(found.curve) == 1
    assert found.summary["bmta"] == found.curve[0]["accuracy_after"]
    assert (found.summary["selected"]["round"], found.summary["candidates"]) == (0, 1)


def test_the_last_model_of_many_rounds_is_told_as_that_round():
    settings = SETTINGS.model_copy(update={"every": 1, "shared_every": 1})
    asked = {"build": BUILD, "settings": settings, "seed": 0}
    found = fine_tuning.through_rounds([state_of(BUILD())], SHARDS, EVERYONE, **asked, first=40)
    assert [row["round"] for row in found.curve] == [40] and found.summary["selected"][
        "round"
    ] == 40


def test_the_same_seed_gives_the_same_bytes_whatever_the_order_of_clients():
    def run(shards):
        return fine_tuning.through_rounds(
            [state_of(BUILD())] * 2, shards, EVERYONE, build=BUILD, settings=SETTINGS, seed=0
        )

    first, second = run(SHARDS), run(dict(reversed(SHARDS.items())))
    assert first.summary == second.summary
    assert first.curve == second.curve


REPLAY = SETTINGS.model_copy(
    update={
        "recipe": "replay",
        "replay": Replay.model_validate(
            {
                "schedules": [
                    {
                        "from_labels": 0,
                        "steps": 60,
                        "learning_rate": 0.01,
                        "synthetic_share": 0.5,
                    }
                ]
            }
        ),
    }
)


def of_one_class(count: int, seed: int) -> Images:
    both = images(4 * count, seed)
    return both[np.flatnonzero(both.labels == 0)[:count]]


def test_with_replay_a_client_of_one_class_keeps_what_the_shared_model_knew():
    """Without it the client's model forgets the other class. Its own read-out is right on its own."""
    everybody = images(400, 7)
    shared = BUILD()
    classifier.fit(shared, everybody, epochs=20, batch=32, learning_rate=0.01, seed=0)
    shard = Shard(of_one_class(40, 1), of_one_class(20, 2), of_one_class(30, 3))
    found = {}
    for name, settings, pool in (
        ("plain", SETTINGS, None),
        ("replay", REPLAY, Pool(everybody, None)),
    ):
        homes = fine_tuning.at_home(
            {"a": state_of(shared)},
            {"a": shard},
            EVERYONE,
            build=BUILD,
            settings=settings,
            seed=0,
            pool=pool,
        )
        found[name] = homes.results["a"]
        assert found[name]["after"]["accuracy"] == 1.0
    assert found["replay"]["global_after"] > 0.95
    assert set(found["replay"]) - set(found["plain"]) == {"steps", "global_at_home"}
    assert found["replay"]["steps"] == 60


def test_the_score_of_a_personal_model_is_that_of_its_file(tmp_path):
    homes = fine_tuning.at_home(
        dict.fromkeys(SHARDS, state_of(BUILD())),
        SHARDS,
        EVERYONE,
        build=BUILD,
        settings=REPLAY,
        seed=0,
        pool=Pool(images(60, 5), None),
    )
    for client, shard in SHARDS.items():
        arrays = homes.personal[client].arrays
        at_home, elsewhere = arrays.pop(personal.AT_HOME), arrays.pop(personal.ELSEWHERE)
        model = personal.Personal(with_state(BUILD(), arrays), at_home, elsewhere)
        scored = homes.results[client]
        own = np.mean(model.predict(shard.test) == shard.test.labels)
        everywhere = np.mean(model.predict(EVERYONE, elsewhere=True) == EVERYONE.labels)
        assert (own, everywhere) == (scored["after"]["accuracy"], scored["global_after"])
