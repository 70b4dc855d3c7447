"""Tests the shared head: one owner's sum, what servers may ask, checkpoints, and who shapes what."""

import math
from functools import partial

import numpy as np
import pytest

from models import classifiers
from pipelines.config.dp import DpsgdHead
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import dpsgd_head
from pipelines.federation.core import rounds
from pipelines.federation.core.messages import LARGEST_WEIGHT, Payload, Reply, run_bounds
from pipelines.federation.dp.head_account import HeadAccount
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.federation.inprocess import in_process
from pipelines.federation.network.gate import check_all_scalars, check_arrays
from pipelines.privacy.noise import SeededForTests
from pipelines.training import linear_head

BUILD = partial(classifiers.build, "scatter", shape=(8, 8, 1), classes=3, seed=0)
NAME = "2.weight"


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """Keeps features of records out of the project's folder."""
    monkeypatch.setattr(linear_head, "FEATURES", tmp_path)


def stripes(count: int, seed: int) -> Images:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    rows = np.arange(8) // np.array([1, 2, 4])[labels][:, None] % 2
    pixels = np.repeat(rows[:, :, None, None] * 200, 8, axis=2) + rng.integers(
        0, 55, (count, 8, 8, 1)
    )
    return Images(pixels.astype(np.uint8), labels, np.arange(count))


def settings(**changes) -> DpsgdHead:
    block = {
        "rounds": 6,
        "count_share": 0.05,
        "clipping_norm": 0.5,
        "momentum": 0.5,
        "averaging": 0.5,
        "schedules": [{"from_signal": 0.0, "steps": 4, "learning_rate": 2.0}],
    }
    return DpsgdHead.model_validate({**block, **changes})


def task(
    data: dict[str, Images], epsilon: float = 8.0, block: DpsgdHead | None = None
) -> NoisyTask:
    block = block or settings()
    return NoisyTask(
        build=BUILD,
        data=data,
        accounts={name: HeadAccount(epsilon, 1e-5, block) for name in data},
        sources={name: SeededForTests(number) for number, name in enumerate(sorted(data))},
    )


def trained(data: dict[str, Images], epsilon: float = 8.0, block: DpsgdHead | None = None):
    block = block or settings()
    made = task(data, epsilon, block)
    state = dpsgd_head.server(made, block)
    engine = in_process(dpsgd_head, made, block)
    return rounds.run(state, dpsgd_head.server_step, engine, rounds=block.rounds, name="head")


def test_without_noise_the_clients_sum_is_one_owners_sum_whoever_owns_what():
    everything = stripes(90, seed=0)
    sorted_rows = np.argsort(everything.labels, kind="stable")
    skewed = {"a": everything[sorted_rows[:50]], "b": everything[sorted_rows[50:]]}
    one = trained({"a": everything}, math.inf).models[-1][NAME]
    two = trained(skewed, math.inf).models[-1][NAME]
    assert np.abs(one).max() > 0.1
    np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


def test_copies_count_as_one_record_each():
    block = settings(warps={"copies": 4, "shift": 1.0})
    clients = {"a": stripes(40, seed=0)}
    made = task(clients, math.inf, block)
    client = dpsgd_head.client(made, "a", block)
    client.release_count()
    assert client.count == 40
    # the mean over records, each of norm 1 at most
    (weights,) = made.start().values()
    assert 0 < np.linalg.norm(client.release_gradient(weights)) <= 1.0


def test_a_run_is_a_round_for_counts_and_as_many_steps_as_were_planned():
    history = trained({"a": stripes(40, 0), "b": stripes(20, 1)})
    assert history.cost["rounds"] == 5
    head = BUILD()[2].weight
    assert history.cost["bytes_up"] == 5 * 2 * head.numel() * 4
    first, *_, last = history.curves
    assert first["noise_multiplier.a"] == pytest.approx(last["noise_multiplier.a"] / 2)
    assert not history.models[1][NAME].any() and history.models[2][NAME].any()


def test_more_records_for_less_noise_take_more_steps():
    schedules = [
        {"from_signal": 0.0, "steps": 2, "learning_rate": 1.0},
        {"from_signal": 100.0, "steps": 5, "learning_rate": 3.0},
    ]
    block = settings(schedules=schedules)
    made = task({"a": stripes(10, 0), "b": stripes(10, 1)}, 8.0, block)
    mu = made.accounts["a"].mu_of_steps
    start = dpsgd_head.server(made, block)

    def counted(records: float) -> dpsgd_head.HeadServer:
        scalars = {"records": records, "noise_multiplier": 1 / mu}
        replies = [Reply(name, Payload({NAME: np.zeros((3, 215))}, scalars)) for name in "ab"]
        return dpsgd_head.server_step(start, replies)

    # two clients with noise of their own: mu times both numbers of records, over the root of two
    enough = 100.0 * math.sqrt(2) / (2 * mu)
    assert (counted(enough * 0.99).steps, counted(enough * 0.99).learning_rate) == (2, 1.0)
    assert (counted(enough * 1.01).steps, counted(enough * 1.01).learning_rate) == (5, 3.0)


def test_every_answer_passes_the_servers_and_the_clients_checks():
    block = settings()
    made = task({"a": stripes(30, 0)}, 0.001, block)
    client = dpsgd_head.client(made, "a", block)
    state = dpsgd_head.server(made, block)
    bounds = run_bounds(dpsgd_head.TELLS, block, (1, 1))
    for number in (1, 2):
        payload = Payload(state.broadcast, {"round": number, **state.instructions})
        answer = dpsgd_head.client_update(payload, client, block)
        check_all_scalars(answer.scalars, bounds)
        check_arrays(answer.arrays, state.broadcast)
        state = dpsgd_head.server_step(state, [Reply("a", answer)])


def test_a_server_that_plans_again_or_goes_on_gets_nothing_more():
    block = settings()
    made = task({"a": stripes(30, 0)}, 3.0, block)
    client = dpsgd_head.client(made, "a", block)
    weights = dpsgd_head.server(made, block).broadcast

    def asked(number: int, **instructions) -> Payload | None:
        return dpsgd_head.client_update(
            Payload(weights, {"round": number, **instructions}), client, block
        )

    asked(1)
    first = asked(2, planned_steps=2)
    again = asked(3, planned_steps=5)
    assert first.scalars["noise_multiplier"] == again.scalars["noise_multiplier"]
    assert asked(4, planned_steps=5) is None
    assert client.account.epsilon_spent == pytest.approx(3.0)


@pytest.mark.parametrize("value", [np.nan, np.inf, LARGEST_WEIGHT, -LARGEST_WEIGHT])
def test_hostile_weights_get_an_answer_of_noise_and_bounded_sums(value):
    block = settings()
    made = task({"a": stripes(30, 0)}, 8.0, block)
    client = dpsgd_head.client(made, "a", block)
    weights = {NAME: np.full((3, 215), value, np.float32)}
    dpsgd_head.client_update(Payload(weights, {"round": 1}), client, block)
    answer = dpsgd_head.client_update(Payload(weights, {"round": 2}), client, block)
    assert np.isfinite(answer.arrays[NAME]).all()


def test_a_client_that_goes_on_from_its_memory_gives_the_same_bytes():
    block = settings()
    data = {"a": stripes(30, 0)}
    weights = dpsgd_head.server(task(data), block).broadcast

    def client():
        return dpsgd_head.client(task(data), "a", block)

    def answer(state, number):
        payload = Payload(weights, {"round": number, "planned_steps": 4})
        return dpsgd_head.client_update(payload, state, block)

    whole = client()
    answers = [answer(whole, number) for number in (1, 2, 3)]
    begun = client()
    for number in (1, 2):
        answer(begun, number)
    continued = client()
    continued.restore(begun.memory)
    again = answer(continued, 3)
    np.testing.assert_array_equal(again.arrays[NAME], answers[2].arrays[NAME])
    assert again.scalars == answers[2].scalars
