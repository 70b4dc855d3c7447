"""Tests what NbAFL's noise is for, what leaves a client, and what the printed bound is worth."""

import math

import numpy as np
import pytest
from blocks import NBAFL
from hypothesis import given
from hypothesis import strategies as st

from models import classifiers
from pipelines.config.dp import Nbafl
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import nbafl
from pipelines.federation.core.messages import Payload, Reply
from pipelines.federation.dp.public import ValidatedServer
from pipelines.privacy import accounting
from pipelines.privacy.noise import OsEntropy, SeededForTests
from pipelines.training.tensors import state_of


def settings(**changes) -> Nbafl:
    return Nbafl(**{**NBAFL, **changes})


def account(epsilon: float = 3.0, **changes):
    return nbafl.new_account(epsilon, 1e-5, settings(**changes))


def network():
    return classifiers.build("mlp", shape=(8, 8, 1), classes=10, seed=0)


def client(count: int = 30, epsilon: float = 3.0, seed: int = 0, **changes) -> nbafl.Client:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (count, 8, 8, 1)).astype(np.uint8)
    data = Images(pixels, rng.integers(0, 10, count), np.arange(count))
    return nbafl.Client(network(), data, account(epsilon, **changes), SeededForTests(seed))


START = state_of(network())


def flat(arrays) -> np.ndarray:
    return np.concatenate([arrays[name].ravel() for name in START])


def update(own, number: int = 1, weights=START):
    return nbafl.client_update(Payload(weights, {"round": number}), own, own.account.settings)


def test_the_rounds_together_spend_exactly_the_budget():
    own = account()
    mu = math.sqrt(3) / own.noise_multiplier
    assert (
        accounting.gdp_epsilon(mu=mu, delta=1e-5) == pytest.approx(3.0, abs=1e-4)
        and own.claim <= 3.0
    )
    assert own.noise_stddev == pytest.approx(2 * 0.5 * own.noise_multiplier)
    assert accounting.total_epsilon(costs=[own.cost], delta=1e-5) == pytest.approx(
        own.claim, rel=2e-3
    )
    statement = own.statement(OsEntropy())
    assert statement.guarantee == "formal" and statement.sampling == "none"
    assert statement.details["sensitivity"] == 1.0


def test_the_budget_is_checked_before_each_round():
    own = client()
    assert [update(own, number) is not None for number in (1, 2, 3, 4)] == [True, True, True, False]
    assert own.account.steps == 3 and own.account.epsilon_spent == pytest.approx(own.account.claim)


def test_without_noise_the_update_is_local_training_s_cut_to_the_clipping_norm():
    free, cut = (
        flat(update(client(epsilon=math.inf, clipping_norm=norm)).arrays) - flat(START)
        for norm in (1e6, 0.1)
    )
    assert np.linalg.norm(cut) == pytest.approx(0.1, rel=1e-4) and np.linalg.norm(free) > 0.1
    np.testing.assert_allclose(cut / 0.1, free / np.linalg.norm(free), atol=1e-5)


def test_the_noise_is_twice_the_clipping_norm_times_the_multiplier():
    noisy, plain = client(learning_rate=1e-12), client(epsilon=math.inf, learning_rate=1e-12)
    noise = flat(update(noisy).arrays) - flat(update(plain).arrays)
    assert noise.std() == pytest.approx(2 * 0.5 * noisy.account.noise_multiplier, rel=0.05)


def test_the_printed_noise_is_the_paper_s_and_has_no_guarantee():
    """dpfl.md 3.4: epsilon 2, C 20, 25 rounds, 6,000 records: 0.40, where 2 C would ask for some 2,400."""
    own = nbafl.new_account(
        2.0, 1e-5, settings(bound="paper", clipping_norm=20.0, rounds=25, records=6000)
    )
    factor = math.sqrt(2 * math.log(1.25e5))
    assert own.noise_stddev == pytest.approx(factor * 25 * (2 * 20 / 6000) / 2)
    assert own.noise_stddev == pytest.approx(0.40, abs=5e-3)
    assert 6000 * own.noise_stddev == pytest.approx(2400, rel=0.02)
    statement = own.statement(OsEntropy())
    assert (
        statement.guarantee == "none"
        and statement.epsilon == math.inf
        and "NO PRIVACY" in statement.sentence
    )
    assert statement.details["epsilon_claimed_by_its_paper"] == 2.0
    honest = accounting.gdp_epsilon(mu=5 * 40 / own.noise_stddev, delta=1e-5)
    assert statement.details["epsilon_at_its_sensitivity"] == pytest.approx(honest) and honest > 1e5


def test_the_printed_way_clips_weights_not_updates():
    sent = update(client(epsilon=1e9, bound="paper", clipping_norm=0.2)).arrays
    assert np.linalg.norm(flat(sent)) == pytest.approx(0.2, rel=1e-3)


def test_a_client_tells_nothing_of_its_training():
    of_its_account = {
        "steps",
        "epsilon_spent",
        "epsilon_by_pld",
        "noise_multiplier",
        "clipping_norm",
    }
    assert set(update(client()).scalars) == {
        *of_its_account,
        "signal_to_noise",
    }  # the last is of what was released


@pytest.mark.parametrize("value", [math.nan, math.inf, 3e38])
def test_hostile_weights_make_no_update_longer_than_the_clipping_norm(value):
    hostile = {name: np.full_like(array, value) for name, array in START.items()}
    own = client(epsilon=math.inf)
    with np.errstate(all="ignore"):
        reached = nbafl.fedprox.client_update(
            Payload(hostile, {"round": 1}), own.local, settings()
        ).arrays
        cut = nbafl.clipped({name: reached[name] - hostile[name] for name in reached}, 0.5)
    assert np.linalg.norm(flat(cut)) <= 0.5 * (1 + 1e-6)


@given(st.lists(st.floats(width=32, allow_nan=True), min_size=1, max_size=8))
def test_nothing_clipped_is_longer_than_the_norm(values):
    cut = nbafl.clipped({"w": np.array(values, np.float32)}, 0.5)["w"]
    assert np.linalg.norm(cut.astype(float)) <= 0.5 * (1 + 1e-6)


def test_the_server_takes_the_plain_mean_and_watches_public_images():
    replies = [
        Reply(name, Payload({"w": np.array([value])})) for name, value in (("a", 1.0), ("b", 3.0))
    ]
    state = nbafl.server_step(ValidatedServer({"w": np.zeros(1)}), replies)
    assert state.weights["w"] == 2.0 and state.metrics == {}


@pytest.mark.parametrize("epsilon", [1e300, math.inf])
def test_a_budget_beyond_all_measure_is_no_arithmetic_error(epsilon):
    own = account(epsilon, bound="paper")
    own.take(1)
    assert (
        own.spent()["epsilon_spent"] == math.inf and own.statement(OsEntropy()).guarantee == "none"
    )


def test_what_is_told_of_a_round_is_public_and_its_ratio_has_no_bias():
    """The update is clipped to C, so its squared norm is C^2.

    Beside noise alone this is over d deviations squared.
    """
    ratios = []
    for seed in range(40):
        told = update(client(epsilon=10.0, seed=seed, clipping_norm=0.5)).scalars
        assert told["clipping_norm"] == 0.5
        ratios.append(told["signal_to_noise"])
    own = account(10.0)
    size = sum(array.size for array in START.values())
    spread = np.std(ratios) / math.sqrt(len(ratios))
    assert np.mean(ratios) == pytest.approx(0.25 / (size * own.noise_stddev**2), abs=4 * spread)
