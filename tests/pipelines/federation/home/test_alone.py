"""Training alone: once for all methods, the result of `local`, and the second model of a mean."""

from functools import partial

import numpy as np
import pytest

from models import classifiers
from pipelines import config, seeds
from pipelines.config.training import FineTune, Replay, ReplaySchedule
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard
from pipelines.errors import UserError
from pipelines.federation.home import alone, fine_tuning
from pipelines.training import replay
from pipelines.training.tensors import state_of

BUILD = partial(classifiers.build, "mlp", shape=(4, 4, 1), classes=2, seed=0)
SCHEDULES = [
    ReplaySchedule(from_labels=0, steps=0, learning_rate=0.01),
    ReplaySchedule(from_labels=1, steps=5, learning_rate=0.01),
    ReplaySchedule(from_labels=30, steps=7, learning_rate=0.01, mean_with_local=True),
]
REPLAY = Replay(batch=8, proximal=0.0, schedules=SCHEDULES)
SETTINGS = FineTune(
    recipe="replay", replay=REPLAY, epochs=2, batch=8, learning_rate=0.01, patience=2
)


def images(count: int, seed: int) -> Images:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    pixels = rng.integers(0, 100, (count, 4, 4, 1)) + labels[:, None, None, None] * 120
    return Images(pixels.astype(np.uint8), labels, np.arange(count))


# few labels, and many
SHARDS = {
    client: Shard(images(count, count), images(20, 1), images(30, 2))
    for client, count in {"few": 10, "many": 40}.items()
}


def homes(settings: FineTune, models) -> fine_tuning.Homes:
    initial = dict.fromkeys(SHARDS, state_of(BUILD()))
    return fine_tuning.at_home(
        initial, SHARDS, images(50, 9), build=BUILD, settings=settings, seed=3, alone=models
    )


def test_what_is_written_is_read(tmp_path):
    models, seconds = alone.trained(BUILD, SHARDS, REPLAY, 3)
    alone.write(tmp_path, models, seconds)
    read, read_seconds = alone.read(tmp_path, list(SHARDS), BUILD)
    assert read_seconds == seconds > 0
    for client, model in models.items():
        expected = BUILD()
        replay.fit_alone(expected, SHARDS[client].train, REPLAY, seeds.derive(3, client))
        for name, array in state_of(expected).items():
            assert np.array_equal(state_of(read[client])[name], array)
            assert np.array_equal(state_of(model)[name], array)


def test_local_is_the_same_whether_it_was_trained_before_or_is_trained_now():
    models, _ = alone.trained(BUILD, SHARDS, REPLAY, 3)
    settings = SETTINGS.model_copy(update={"recipe": "alone"})
    before, now = homes(settings, models), homes(settings, None)
    assert before.results == now.results
    for client in SHARDS:
        for name, array in before.personal[client].arrays.items():
            assert np.array_equal(array, now.personal[client].arrays[name])
    assert [before.results[client]["steps"] for client in ("few", "many")] == [5, 7]


def test_only_a_client_with_many_labels_answers_with_the_mean_of_both():
    models, _ = alone.trained(BUILD, SHARDS, REPLAY, 3)
    found = homes(SETTINGS, models).personal
    assert found["many"].alone is models["many"]
    assert found["few"].alone is None


def test_plain_fine_tuning_needs_none_of_it(tmp_path, monkeypatch):
    params = config.load()
    plain = params.training("digits", "fine_tune").model_copy(update={"recipe": "plain"})
    monkeypatch.setattr(config.Params, "training", lambda *_: plain)
    monkeypatch.chdir(tmp_path)
    assert alone.at_hand(params, "digits", BUILD) == (None, 0.0)


def test_a_client_without_its_model_is_one_sentence(tmp_path):
    models, seconds = alone.trained(BUILD, SHARDS, REPLAY, 3)
    alone.write(tmp_path, models, seconds)
    with pytest.raises(UserError, match=r"other\.safetensors"):
        alone.read(tmp_path, ["other"], BUILD)
