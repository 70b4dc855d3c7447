"""DP-SCAFFOLD: a client's variate is the mean of what it released, and corrects the steps that follow."""

import math

import numpy as np
import torch
from blocks import DPSGD

from models import classifiers
from pipelines.config.dp import Dpsgd
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import dpsgd
from pipelines.federation.core.control_variates import named, parted
from pipelines.federation.core.messages import Payload, Reply
from pipelines.federation.dp import dpsgd_server
from pipelines.privacy.noise import SeededForTests
from pipelines.privacy.per_sample import scaled_sum
from pipelines.training.tensors import state_of


def network():
    return classifiers.build("mlp", shape=(8, 8, 1), classes=10, seed=0)


START = state_of(network())
ZEROS = {name: np.zeros_like(array) for name, array in START.items()}
ASKED = {"noise_factor": 1.0, "local_steps": 2}


def client(epsilon: float = 3.0, **changes) -> dpsgd.Client:
    rng = np.random.default_rng(0)
    data = Images(
        rng.integers(0, 256, (30, 8, 8, 1)).astype(np.uint8), rng.integers(0, 10, 30), np.arange(30)
    )
    settings = Dpsgd(**{**DPSGD, "control_variates": True, **changes})
    return dpsgd.Client(
        network(), data, dpsgd.new_account(epsilon, 1e-5, settings), SeededForTests(0)
    )


def answer(own: dpsgd.Client, payload: Payload) -> Payload:
    return dpsgd.client_update(payload, own, own.account.settings)


def test_with_zero_variates_the_first_round_is_dp_sgd_s():
    with_them = answer(client(), Payload({**START, **named(ZEROS)}, ASKED))
    without = answer(client(control_variates=False), Payload(START, ASKED))
    weights, change = parted(with_them.arrays)
    for name, array in without.arrays.items():
        np.testing.assert_allclose(weights[name], array, atol=1e-6)
    for (
        name,
        array,
    ) in (
        change.items()
    ):  # plain steps of rate 1: what was moved is the sum of the released gradients
        np.testing.assert_allclose(array, (START[name] - weights[name]) / 2, atol=1e-5)


def test_a_step_goes_along_the_released_gradient_less_the_clients_variate_plus_the_servers():
    own, plain = (
        client(epsilon=math.inf, sampling_rate=0.999),
        client(epsilon=math.inf, sampling_rate=0.999),
    )
    lot = torch.ones(30, dtype=torch.bool)
    rng = np.random.default_rng(1)
    control, mine = (
        {name: rng.normal(size=a.shape).astype(np.float32) for name, a in START.items()}
        for _ in "ab"
    )
    own.variate.variate = mine
    own.variate.begin(control)
    for each in (own, plain):
        dpsgd.take_steps(each, 1, scaled_sum(each.model, each.lot_of(lot)))
    for name, array in state_of(own.model).items():
        drifted = state_of(plain.model)[name] - (control[name] - mine[name])
        np.testing.assert_allclose(array, drifted, atol=1e-5)
    change = own.variate.end()
    for name, array in change.items():
        released = START[name] - state_of(plain.model)[name]
        np.testing.assert_allclose(array, released - mine[name], atol=1e-5)
        np.testing.assert_allclose(own.variate.variate[name], released, atol=1e-5)


def test_the_server_moves_its_variate_by_the_share_of_clients_that_answered():
    settings = Dpsgd(**{**DPSGD, "control_variates": True})
    state = dpsgd_server.start({"w": np.zeros(1)}, settings, clients=4)
    assert set(state.broadcast) == {"w", "control.w"}
    told = {"left": 10, "noise_multiplier": 2.0, "clipping_norm": 0.5}
    replies = [
        Reply(c, Payload({"w": np.ones(1), "control.w": np.array([v])}, told))
        for c, v in (("a", 2.0), ("b", 6.0))
    ]
    state = dpsgd_server.step(state, replies)
    assert state.control["w"] == 4.0 * 2 / 4 and state.weights["w"] == 1.0
    assert set(state.weights) == {"w"}


def test_variates_draw_clients_with_different_labels_together():
    """There is no noise, and there are many local steps.

    Two clients that hold one class each drift apart, and drift less with variates.
    """

    def ends(control_variates: bool) -> float:
        rng = np.random.default_rng(0)
        settings = Dpsgd(
            **{
                **DPSGD,
                "control_variates": control_variates,
                "local_steps": 20,
                "sampling_rate": 0.999,
            }
            | {"rounds": 6, "expected_lot": 30.0, "clipping_norm": 10.0, "learning_rate": 0.02}
        )
        pixels = rng.integers(0, 256, (30, 8, 8, 1)).astype(np.uint8)
        data = {
            c: Images(pixels, np.full(30, label), np.arange(30))
            for c, label in (("a", 0), ("b", 1))
        }
        clients = {
            c: dpsgd.Client(
                network(), own, dpsgd.new_account(math.inf, 1e-5, settings), SeededForTests(0)
            )
            for c, own in data.items()
        }
        state = dpsgd_server.start(START, settings, clients=2)
        for _ in range(6):
            payload = Payload(state.broadcast, state.instructions)
            replies = [Reply(c, answer(each, payload)) for c, each in clients.items()]
            state = dpsgd_server.step(state, replies)
        one, two = (parted(reply.payload.arrays)[0] for reply in replies)
        return sum(float(np.square(one[name] - two[name]).sum()) for name in one)

    assert ends(True) < 0.5 * ends(False)
