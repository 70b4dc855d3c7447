import numpy as np
import pytest
import torch

from pipelines.federation.algorithms import fedavg, fednova
from pipelines.federation.core.messages import Payload, ServerState
from pipelines.federation.inprocess import federate


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_worth_is_the_length_that_torch_goes_along_a_constant_gradient(momentum, steps):
    """a is |a-vector|_1 of the paper: what `steps` unit gradients move a weight by, in learning rates."""
    weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimiser = torch.optim.SGD([weight], lr=1.0, momentum=momentum)
    for _ in range(steps):
        weight.grad = torch.ones_like(weight)
        optimiser.step()
    assert fednova.worth(steps, momentum) == pytest.approx(-weight.item())


def test_the_server_follows_the_paper_by_hand(replies):
    """w = 1; a: 30 images, 6 steps, change 3; b: 10 images, 2 steps, change 1. Both moved 1/2 a step:
    effective steps 0.75 x 6 + 0.25 x 2 = 5, mean direction 1/2, so w = 1 - 2.5."""
    given = replies(a=(-2.0, {"images": 30, "steps": 6}), b=(0.0, {"images": 10, "steps": 2}))
    assert fednova.server_step(fednova.NovaState({"w": np.array([1.0])}, 0.0), given).weights[
        "w"
    ] == pytest.approx(-1.5)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_equal_steps_are_fedavg(replies, momentum):
    given = replies(a=(-2.0, {"images": 30, "steps": 4}), b=(5.0, {"images": 10, "steps": 4}))
    start = {"w": np.array([1.0])}
    nova = fednova.server_step(fednova.NovaState(start, momentum), given).weights["w"]
    assert nova == pytest.approx(fedavg.server_step(ServerState(start), given).weights["w"])


def test_unequal_steps_are_not(replies):
    given = replies(a=(-2.0, {"images": 30, "steps": 4}), b=(5.0, {"images": 10, "steps": 1}))
    start = {"w": np.array([1.0])}
    nova = fednova.server_step(fednova.NovaState(start, 0.0), given).weights["w"]
    assert abs(nova - fedavg.server_step(ServerState(start), given).weights["w"]) > 0.1


def test_a_run_s_momentum_reaches_the_server(task, sgd_settings, images):
    """The oracle computes unequal steps of a whole run by hand, with the momentum that the clients
    step with.
    """
    given = task(data={"a": images(40, 1), "b": images(10, 2)})
    settings = sgd_settings(momentum=0.9, rounds=1)
    sent = Payload(given.start(), {"round": 1})
    answers = {c: fednova.client_update(sent, given.local(c), settings) for c in "ab"}
    worth = {c: fednova.worth(answer.scalars["steps"], 0.9) for c, answer in answers.items()}
    assert worth["a"] > 2 * worth["b"] > 0
    effective = 0.8 * worth["a"] + 0.2 * worth["b"]
    after = federate("fednova", given, settings).models[1]
    for name, array in sent.arrays.items():
        moves = {c: (array - answers[c].arrays[name]) / worth[c] for c in "ab"}
        np.testing.assert_allclose(
            after[name], array - effective * (0.8 * moves["a"] + 0.2 * moves["b"]), atol=1e-12
        )
