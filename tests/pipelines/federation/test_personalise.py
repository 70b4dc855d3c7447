from functools import partial

import numpy as np
import pytest

from models import classifiers
from pipelines.blocks.training import FineTune
from pipelines.datasets.containers import Images
from pipelines.datasets.shards import Shard
from pipelines.federation import personalise
from pipelines.training.tensors import state_of

BUILD = partial(classifiers.build, "mlp", shape=(4, 4, 1), classes=2, seed=0)
SETTINGS = FineTune(epochs=20, batch=8, learning_rate=0.01, patience=20, every=2)


def images(count, seed):
    """Bright images are class 1: learnable in a few steps."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    pixels = rng.integers(0, 100, (count, 4, 4, 1)) + labels[:, None, None, None] * 120
    return Images(pixels.astype(np.uint8), labels, np.arange(count))


SHARDS = {name: Shard(images(40, i), images(20, i + 10), images(30, i + 20)) for i, name in enumerate("ab")}
EVERYONE = images(50, 99)


def test_fine_tuning_helps_and_leaves_the_initial_model_alone():
    initial = state_of(BUILD())
    before = {name: array.copy() for name, array in initial.items()}
    results, models = personalise.at_home(initial, SHARDS, EVERYONE, build=BUILD, settings=SETTINGS, seed=0)
    assert all(np.array_equal(initial[name], before[name]) for name in initial)
    for client in SHARDS:
        assert results[client]["after"]["accuracy"] > 0.9 > results[client]["before"]["accuracy"]
        assert not np.array_equal(models[client]["1.weight"], initial["1.weight"])


def test_the_result_is_the_last_round_and_bmta_the_best_over_trained_rounds(monkeypatch):
    by_round = {0: 0.99, 2: 0.7, 4: 0.9, 5: 0.8}

    def at_home(initial, *args, **kwargs):
        accuracy = by_round[int(initial["round"])]
        entry = {"accuracy": accuracy, "macro_f1": accuracy - 0.1}
        return {"a": {"before": entry, "after": entry, "global_before": 0.5}}, {"a": initial}

    monkeypatch.setattr(personalise, "at_home", at_home)
    models = [{"round": np.array(number)} for number in range(6)]
    summary, curve, personal = personalise.through_rounds(
        models, SHARDS, EVERYONE, build=BUILD, settings=SETTINGS, seed=0
    )
    assert [row["round"] for row in curve] == [0, 2, 4, 5]
    assert summary["clients"]["a"]["after"]["accuracy"] == 0.8
    assert int(personal["a"]["round"]) == 5
    assert summary["bmta"] == 0.9  # round 0 is no trained model
    assert summary["bmt_f1"] == pytest.approx(0.8)


def test_a_method_without_rounds_has_one_row():
    summary, curve, _ = personalise.through_rounds(
        [state_of(BUILD())], SHARDS, EVERYONE, build=BUILD, settings=SETTINGS, seed=0
    )
    assert len(curve) == 1
    assert summary["bmta"] == curve[0]["accuracy_after"]
