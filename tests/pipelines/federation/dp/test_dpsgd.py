import math

import numpy as np
import pytest
import torch

from models import classifiers
from pipelines.blocks.training import Dpsgd
from pipelines.datasets.containers import Images
from pipelines.federation.dp import dpsgd
from pipelines.federation.messages import Payload, Reply
from pipelines.privacy import accounting
from pipelines.privacy.noise import OsEntropy, SeededForTests
from pipelines.training.tensors import state_of

SETTINGS = Dpsgd(rounds=3, local_steps=2, sampling_rate=0.3, expected_lot=10.0, clipping_norm=0.5, learning_rate=1.0)


def images(count):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (count, 8, 8, 1)).astype(np.uint8)
    return Images(pixels, rng.integers(0, 10, count), np.arange(count))


def network():
    return classifiers.build("mlp", shape=(8, 8, 1), classes=10, seed=0)


def update(account, count=30, seed=0, round=1):
    generator = torch.Generator().manual_seed(seed)
    payload = Payload(state_of(network()), {"round": round})
    return dpsgd.client_update(payload, model=network(), data=images(count), account=account, generator=generator)


def test_the_plan_spends_the_budget_and_not_more():
    account = dpsgd.Budgeted(3.0, 1e-5, SETTINGS)
    spent = accounting.schedule_epsilon(schedule=account.schedule(6), delta=1e-5)
    assert 2.9 < spent <= 3.0
    assert account.affordable == 6


def test_the_budget_is_checked_before_it_is_spent():
    account = dpsgd.Budgeted(3.0, 1e-5, SETTINGS)
    for _ in range(3):
        assert update(account) is not None
    assert account.steps == 6
    assert update(account) is None
    assert account.steps == 6


def test_steps_that_planning_got_wrong_are_refused(monkeypatch):
    honest = accounting.noise_for
    monkeypatch.setattr(accounting, "noise_for", lambda **asked: 0.8 * honest(**asked))
    account = dpsgd.Budgeted(3.0, 1e-5, SETTINGS)
    assert 0 < account.affordable < 6
    spent = [
        accounting.schedule_epsilon(schedule=account.schedule(account.affordable + more), delta=1e-5) for more in (0, 1)
    ]
    assert spent[0] <= 3 < spent[1]


def test_an_empty_lot_is_noised_and_counted():
    account = dpsgd.Budgeted(3.0, 1e-5, SETTINGS)
    reply = update(account, count=0)
    assert account.steps == 2
    start = state_of(network())
    moved = np.concatenate([(reply.arrays[name] - start[name]).ravel() for name in start])
    # two steps of N(0, (z C)^2) / lot, learning rate 1
    expected = math.sqrt(2) * account.noise_multiplier * 0.5 / 10
    assert moved.std() == pytest.approx(expected, rel=0.05)


def test_no_epsilon_no_noise_and_no_guarantee():
    account = dpsgd.Budgeted(math.inf, 1e-5, SETTINGS)
    assert account.noise_multiplier == 0
    assert np.array_equal(update(account, seed=1, count=0).arrays["1.weight"], state_of(network())["1.weight"])
    assert account.statement(OsEntropy()).guarantee == "none"


def test_the_statement_says_what_was_spent():
    account = dpsgd.Budgeted(3.0, 1e-5, SETTINGS)
    assert account.statement(OsEntropy()).epsilon == 0
    for _ in range(3):
        update(account)
    statement = account.statement(OsEntropy())
    assert 2.9 < statement.epsilon <= 3.0
    assert 0 < statement.details["epsilon_by_pld"] <= statement.epsilon
    assert statement.guarantee == "formal"
    assert account.statement(SeededForTests(0)).guarantee == "none"


def test_the_server_takes_the_plain_mean():
    replies = [Reply(c, Payload({"w": np.array([v])}, {"steps": s})) for c, v, s in (("a", 1.0, 2), ("b", 3.0, 200))]
    assert dpsgd.server_step(dpsgd.Server({}), replies).weights["w"] == 2.0
