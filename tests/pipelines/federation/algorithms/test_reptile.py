import numpy as np
import pytest

from pipelines.config.training import Reptile
from pipelines.federation.algorithms import reptile


def test_the_model_moves_its_share_of_the_way_to_the_unweighted_mean(replies, sgd_settings):
    """w = 1, mean of the clients 3, rate 0.5: 2; and in round 3 of 4, at half the rate, half as far."""
    given = replies(a=(2.0, {"images": 30}), b=(4.0, {"images": 10}))
    state = reptile.ReptileState(
        {"w": np.array([1.0])}, sgd_settings(Reptile, outer_learning_rate=0.5)
    )
    assert reptile.server_step(state, given).weights["w"] == pytest.approx(2.0)
    later = reptile.ReptileState({"w": np.array([1.0])}, state.settings, round=2)
    assert reptile.server_step(later, given).weights["w"] == pytest.approx(1.5)


def test_the_rate_falls_to_zero_after_the_last_round(replies, sgd_settings):
    given, state = (
        replies(a=(2.0, {})),
        reptile.ReptileState({"w": np.zeros(1)}, sgd_settings(Reptile, outer_learning_rate=1.0)),
    )
    for _ in range(4):
        state = reptile.server_step(state, given)
    assert state.round == 4
    assert reptile.server_step(state, given).weights["w"] == state.weights["w"]
