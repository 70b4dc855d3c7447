"""Tests the training loop: the best epoch stays, seeds repeat, and every record is visited once per
epoch.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from models import classifiers
from pipelines.config.data import Augmentation
from pipelines.synthesis.base import Space
from pipelines.training import classifier
from pipelines.training.tensors import state_of, tensors

SPACE = Space(6, 5, 1, 3)


def new(seed: int = 0):
    return classifiers.build("mlp", shape=SPACE.shape, classes=3, seed=seed)


def loss_of(model, data) -> float:
    images, labels = tensors(data)
    with torch.no_grad():
        return F.cross_entropy(model(images), labels).item()


def same(one, two) -> bool:
    return all(np.array_equal(one[name], two[name]) for name in one)


SETTINGS = {"batch": 8, "learning_rate": 0.01, "seed": 3}


@pytest.fixture
def train(records):
    return records(24, SPACE, seed=1)


@pytest.fixture
def validation(records):
    """Returns images with random labels.

    They score best after no or few epochs, so that stopping matters.
    """
    return records(60, SPACE, seed=2)


def after_each_epoch(train, count: int) -> list:
    """Returns the weights after 0, 1, ..., `count` epochs without early stopping."""
    models = [new() for _ in range(count + 1)]
    for epochs, model in enumerate(models[1:], start=1):
        classifier.fit(model, train, epochs=epochs, **SETTINGS)
    return models


def test_the_weights_of_the_best_epoch_stay(train, records):
    """The oracle trains anew for each number of epochs.

    Validation mixes new records with seen ones.
    """
    found = set()
    for seed in range(2, 6):
        other = records(16, SPACE, seed=seed)
        held = type(other)(
            np.concatenate([other.images, train.images[:8]]),
            np.concatenate([other.labels, train.labels[:8]]),
            np.arange(24),
        )
        models = after_each_epoch(train, 12)
        best = int(np.argmin([loss_of(model, held) for model in models]))
        model = new()
        run = classifier.fit(model, train, epochs=12, validation=held, patience=None, **SETTINGS)
        assert run == 12
        assert same(state_of(model), state_of(models[best]))
        found.add(best)
    assert (
        max(found) > 0 and min(found) < 12
    )  # the case is neither the first nor the last epoch throughout


def test_training_stops_after_patience_epochs_without_a_better_one(train, validation):
    losses = [loss_of(model, validation) for model in after_each_epoch(train, 12)]
    for patience in (1, 2, 4):
        best, expected = 0, 12
        for epoch in range(1, 13):
            best = epoch if losses[epoch] < losses[best] else best
            if epoch - best >= patience:
                expected = epoch
                break
        model = new()
        run = classifier.fit(
            model, train, epochs=12, validation=validation, patience=patience, **SETTINGS
        )
        assert run == expected
        assert loss_of(model, validation) == pytest.approx(losses[best])


def test_untrained_weights_win_where_training_only_harms(train, validation):
    model = new()
    classifier.fit(
        model, train, epochs=5, validation=validation, **{**SETTINGS, "learning_rate": 5.0}
    )
    assert same(state_of(model), state_of(new()))


def test_an_empty_validation_set_means_no_early_stopping(train):
    model, plain = new(), new()
    assert classifier.fit(model, train, epochs=3, validation=train[:0], patience=1, **SETTINGS) == 3
    classifier.fit(plain, train, epochs=3, **SETTINGS)
    assert same(state_of(model), state_of(plain))


def test_the_same_seed_trains_the_same_and_global_seeds_do_not_matter(train):
    states = []
    for seed in (3, 3, 4):
        torch.manual_seed(len(states))
        model = new()
        classifier.fit(model, train, epochs=2, **{**SETTINGS, "seed": seed})
        states.append(state_of(model))
    assert same(states[0], states[1]) and not same(states[0], states[2])


def test_training_learns(records):
    data = records(60, SPACE)
    model = new()
    before = loss_of(model, data)
    classifier.fit(model, data, epochs=60, **SETTINGS)
    assert loss_of(model, data) < 0.2 * before
    assert not model.training


def test_batches_visit_every_position_once():
    pieces = list(classifier.batches(10, 4, torch.Generator().manual_seed(0)))
    assert [len(piece) for piece in pieces] == [4, 4, 2]
    assert sorted(torch.cat(pieces).tolist()) == list(range(10))


def test_augmentation_takes_part_in_training(train):
    warped, plain = new(), new()
    still = Augmentation(rotation=0.0, scale=0.0, shear=0.0, shift=2.0, elastic=0.0, noise=0.0)
    classifier.fit(warped, train, epochs=1, augmentation=still, **SETTINGS)
    classifier.fit(plain, train, epochs=1, **SETTINGS)
    assert not same(state_of(warped), state_of(plain))


def test_one_cycle_takes_its_steps_at_the_rates_of_the_schedule(train):
    """The oracle is a loop of the test's own.

    24 records in batches of 10 are three steps an epoch.
    """
    model, plain = new(), new()
    classifier.fit(model, train, epochs=2, one_cycle=True, **{**SETTINGS, "batch": 10})
    images, labels = tensors(train)
    optimiser = torch.optim.Adam(plain.parameters(), lr=SETTINGS["learning_rate"])
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, SETTINGS["learning_rate"], total_steps=6
    )
    stream = torch.Generator().manual_seed(SETTINGS["seed"])
    rates = []
    for _ in range(2):
        for rows in classifier.batches(24, 10, stream):
            optimiser.zero_grad()
            F.cross_entropy(plain(images[rows]), labels[rows]).backward()
            rates.append(schedule.get_last_lr()[0])
            optimiser.step()
            schedule.step()
    assert same(state_of(model), state_of(plain))
    assert rates[-1] < rates[0] < max(rates)
