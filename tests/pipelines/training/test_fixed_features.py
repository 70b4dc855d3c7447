"""Tests the fixed features of records, their cache, and training on them."""

import numpy as np
import pytest
import torch

from models import classifiers, scattering_basis
from pipelines.config.data import Augmentation, Profile
from pipelines.config.training import Replay
from pipelines.datasets.labelled_images import Images
from pipelines.training import classifier, fixed_features, public_basis, replay
from pipelines.training.pool import Pool
from pipelines.training.tensors import state_of

SHAPE = (8, 8, 1)


def images(count: int, seed: int = 0) -> Images:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (count, *SHAPE)).astype(np.uint8)
    return Images(pixels, rng.integers(0, 3, count), np.arange(count))


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Makes bases of few noise images, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scattering_basis, "IMAGES", 200)
    monkeypatch.setattr(scattering_basis.make, "__defaults__", (200, iter))
    fixed_features.module.cache_clear()
    yield tmp_path
    fixed_features.module.cache_clear()


def test_the_features_are_the_network_s(small):
    profile = Profile.model_construct(classifier="scatter", shape=[8, 8, 1], classes=3)
    model = classifier.new(profile, seed=0)
    data = images(130)
    found = fixed_features.features(data)
    pixels = torch.from_numpy(data.pixels).permute(0, 3, 1, 2)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, model[0](pixels), atol=1e-5)
    assert fixed_features.features(images(0)).shape == (0, model[0].count)


def test_the_cache_knows_its_images_and_its_basis(small, monkeypatch):
    folder = small / "private"
    found = fixed_features.features(images(5), folder=folder)
    (file,) = folder.iterdir()
    assert folder.stat().st_mode & 0o077 == 0 and file.stat().st_mode & 0o077 == 0
    with monkeypatch.context() as patch:
        patch.setattr(fixed_features, "_in_batches", lambda *_: pytest.fail("computed again"))
        np.testing.assert_array_equal(fixed_features.features(images(5), folder=folder), found)
    fixed_features.features(images(5, seed=1), folder=folder)
    assert len(list(folder.iterdir())) == 2
    stored = public_basis.stored_basis(SHAPE)
    monkeypatch.setattr(public_basis, "stored_basis", lambda _: stored._replace(sha256="another"))
    fixed_features.features(images(5), folder=folder)
    assert len(list(folder.iterdir())) == 3


def test_to_train_the_part_is_to_train_the_network(small):
    profile = Profile.model_construct(classifier="scatter", shape=[8, 8, 1], classes=3)
    model = classifier.new(profile, seed=0)
    pixels = torch.rand(6, 1, 8, 8)
    part, entering = fixed_features.without_fixed_part(model, pixels)
    assert set(state_of(part)) == set(state_of(model)) == {"2.weight"}
    torch.nn.init.normal_(part[-1].weight)
    torch.testing.assert_close(part(entering), model(pixels), atol=1e-4, rtol=1e-4)


def test_replay_trains_it_on_private_and_released_images(small):
    profile = Profile.model_construct(classifier="scatter", shape=[8, 8, 1], classes=3)
    schedule = {"from_labels": 0, "steps": 3, "learning_rate": 0.03, "synthetic_share": 0.5}
    settings = Replay.model_validate({"batch": 16, "proximal": 0.01, "schedules": [schedule]})
    prior = np.zeros(3, np.float32)
    for released in (None, Pool(images(40, seed=1), Augmentation(noise=0.1))):
        model = classifier.new(profile, seed=0)
        steps = replay.fit(model, images(30), released, prior=prior, settings=settings, seed=0)
        assert steps == 3 and set(state_of(model)) == {"2.weight"}
        assert state_of(model)["2.weight"].any()


def test_any_other_network_comes_back_as_it_is():
    model = classifiers.build("mlp", shape=SHAPE, classes=3, seed=0)
    pixels = torch.rand(2, 1, 8, 8)
    part, entering = fixed_features.without_fixed_part(model, pixels)
    assert part is model and entering is pixels


def test_an_images_features_depend_on_no_other_image_to_the_last_bit(small):
    """Else adding a record could move other records' parts of a sum beside its own."""
    data = images(70)
    whole = fixed_features.features(data)
    rng = np.random.default_rng(1)
    for count in (1, 15, 16, 33, 69):
        rows = rng.permutation(70)[:count]
        np.testing.assert_array_equal(fixed_features.features(data[rows]), whole[rows])
