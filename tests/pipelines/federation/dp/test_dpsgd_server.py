"""Tests the server's step on hand-made replies."""

from types import SimpleNamespace

import numpy as np
import pytest
from blocks import DPSGD

from pipelines.config.dp import Dpsgd
from pipelines.federation.core.messages import Payload, Reply
from pipelines.federation.dp import dpsgd_server
from pipelines.federation.network.gate import Gate


def told(value: float, left: int = 10) -> Payload:
    scalars = {"left": left, "noise_multiplier": 2.0, "clipping_norm": 0.5}
    return Payload({"w": np.array([value])}, scalars)


def test_the_server_takes_the_plain_mean():
    replies = [Reply(c, told(v)) for c, v in (("a", 1.0), ("b", 3.0))]
    assert (
        dpsgd_server.step(dpsgd_server.start({"w": np.zeros(1)}, Dpsgd(**DPSGD)), replies).weights[
            "w"
        ]
        == 2.0
    )


def test_averaging_keeps_the_mean_of_all_until_it_forgets_and_sends_the_latest():
    state, seen = (
        dpsgd_server.start({"w": np.array([100.0])}, Dpsgd(**{**DPSGD, "averaging": 0.75})),
        [],
    )
    for value in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
        state = dpsgd_server.step(state, [Reply("a", told(value))])
        seen.append(state.weights["w"].item())
        assert state.broadcast["w"] == value
    assert seen[:4] == pytest.approx([1, 1.5, 2, 2.5])
    assert seen[4:] == pytest.approx(
        [0.75 * 2.5 + 0.25 * 5, 0.75 * (0.75 * 2.5 + 0.25 * 5) + 0.25 * 6]
    )


def test_the_model_that_is_watched_is_the_one_that_is_kept():
    public = SimpleNamespace(validate=lambda weights, most: (1.0, weights["w"].item()))
    state = dpsgd_server.start({"w": np.zeros(1)}, Dpsgd(**{**DPSGD, "averaging": 0.75}), public)
    for value in (1.0, 2.0):
        state = dpsgd_server.step(state, [Reply("a", told(value))])
    assert state.metrics["public_accuracy"] == state.weights["w"].item() == pytest.approx(1.5)


def test_what_the_public_images_say_sets_the_next_rounds_noise():
    losses = iter([3.0, 2.0, 1.0, 0.5, 0.6])
    settings = Dpsgd(**{**DPSGD, "noise_control": "falling_loss", "noise_decay": 0.5})
    public = SimpleNamespace(validate=lambda weights, most: (next(losses), weights["w"].item()))
    state = dpsgd_server.start({"w": np.zeros(1)}, settings, public)
    assert state.instructions == {"noise_factor": 1.0, "local_steps": 2}
    assert state.metrics == {"next_noise_factor": 1.0, "next_local_steps": 2}
    factors = []
    for value in range(5):
        state = dpsgd_server.step(state, [Reply("a", told(float(value)))])
        factors.append(state.instructions["noise_factor"])
    assert factors == [1, 1, 0.5, 0.25, 0.25]
    assert (state.metrics["public_loss"], state.metrics["public_accuracy"]) == (0.6, 4.0)


def test_the_client_with_least_left_bounds_the_rounds_that_follow():
    settings = Dpsgd(
        **{
            **DPSGD,
            "rounds": 5,
            "local_steps_rule": "ratio",
            "local_steps": 1,
            "noise_multiplier": 2.0,
        }
    )
    state = dpsgd_server.start({"w": np.zeros(1)}, settings)
    assert state.instructions["local_steps"] == 1
    state = dpsgd_server.step(
        state, [Reply("a", told(1.0, left=100)), Reply("b", told(1.0, left=22))]
    )
    assert state.instructions["local_steps"] == 6  # 22 steps over four rounds


def test_a_rule_that_probes_sees_released_weights_and_public_images_alone():
    """On a quadratic loss of curvature 3 the slope is 3, whatever the clients did."""
    asked = {
        "rounds": 10,
        "local_steps_rule": "paper",
        "noise_multiplier": 2.0,
        "expected_lot": 1e6,
    }
    settings = Dpsgd(**{**DPSGD, **asked})
    seen = []

    def probe(states):
        points = [state["w"] for state in states]
        seen.extend(point.item() for point in points)
        return (
            points,
            [1.5 * point.item() ** 2 for point in points],
            [3 * point for point in points],
        )

    public = SimpleNamespace(validate=lambda weights, most: (1.0, 0.5), probe=probe)
    state = dpsgd_server.step(
        dpsgd_server.start({"w": np.zeros(1)}, settings, public),
        [Reply("a", told(1.0, left=1000)), Reply("b", told(3.0, left=1000))],
    )
    assert seen == [1.0, 3.0, 2.0]
    gap = 1.5 * ((1 - 4) + (9 - 4)) / 2
    expected = np.sqrt(1 + (4 / 9 + 3 * 0.25 + gap * 3 * 20) / ((2 + 2 / 20) * 0.25))
    assert state.tau == round(expected)


def test_by_proxy_the_server_sends_the_norm_that_public_images_have():
    asked = {"clipping": "proxy", "clipping_quantile": 0.3}
    public = SimpleNamespace(
        validate=lambda weights, most: (1.0, 0.5),
        gradient_norm=lambda weights, quantile: weights["w"].item() + quantile,
    )
    state = dpsgd_server.start({"w": np.ones(1)}, Dpsgd(**{**DPSGD, **asked}), public)
    assert state.instructions["clipping_norm"] == 1.3
    assert dpsgd_server.step(state, [Reply("a", told(5.0))]).instructions["clipping_norm"] == 5.3
    assert (
        "clipping_norm"
        not in dpsgd_server.start({"w": np.ones(1)}, Dpsgd(**DPSGD), public).instructions
    )


@pytest.mark.parametrize(("norm", "sent"), [(0.0, 1e-9), (1e20, 1e9), (np.nan, None)])
def test_by_proxy_no_norm_is_sent_that_a_client_would_refuse(norm, sent):
    """Over a network, a refusal would end a run whose budget is entered."""
    public = SimpleNamespace(
        validate=lambda weights, most: (1.0, 0.5), gradient_norm=lambda weights, quantile: norm
    )
    asked = dpsgd_server.start(
        {"w": np.ones(1)}, Dpsgd(**{**DPSGD, "clipping": "proxy"}), public
    ).instructions
    assert asked.get("clipping_norm") == sent
    Gate(lambda payload: None, {}, 1).answer(Payload({}, {"round": 1, **asked}))


def test_a_rounds_model_is_scored_on_no_more_public_images_than_its_lots_hold():
    asked = []
    public = SimpleNamespace(validate=lambda weights, most: asked.append(most) or (1.0, 0.5))
    settings = Dpsgd(**{**DPSGD, "local_steps": 2, "expected_lot": 10.4})
    for clients in (3, 40, 100):
        dpsgd_server.step(
            dpsgd_server.start({"w": np.zeros(1)}, settings, public, clients),
            [Reply("a", told(1.0))],
        )
    assert asked == [500, 832, 2080]
