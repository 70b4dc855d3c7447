"""Tests the rules of Adap DP-FL and DPFL-AGN on hand-made losses."""

import math

import pytest
from blocks import DPSGD
from hypothesis import given
from hypothesis import strategies as st

from pipelines.config.dp import Dpsgd
from pipelines.federation.core.messages import Payload
from pipelines.federation.dp.noise_schedule import next_factor
from pipelines.federation.network.gate import Gate


def factors(control: str, losses: list[float], **changes) -> list[float]:
    """Returns the factor after each round."""
    settings = Dpsgd(**{**DPSGD, "noise_control": control, "noise_decay": 0.5, **changes})
    factor, found = 1.0, []
    for number in range(1, len(losses) + 1):
        factor = next_factor(settings, factor, losses[:number])
        found.append(factor)
    return found


def test_constant_noise_asks_nothing_of_the_loss():
    assert factors("const", [5.0, 4.0, 3.0, 2.0, 1.0]) == [1] * 5


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([5.0, 4.0, 3.0, 2.0], [1, 1, 0.5, 0.25]),  # infinity, 5, 4, 3 fall too
        ([5.0, 4.0, 4.0, 3.0, 2.0, 1.0], [1, 1, 1, 1, 1, 0.5]),  # equal losses do not fall
        ([3.0, 2.0, 2.5, 2.4, 2.3, 2.2], [1, 1, 1, 1, 1, 0.5]),
        ([math.nan] * 5, [1] * 5),
        ([math.inf] * 5, [1] * 5),
    ],
)
def test_four_losses_that_fall(losses, expected):
    assert factors("falling_loss", losses) == expected


@given(st.lists(st.floats(0, 10), max_size=12))
def test_falling_loss_is_equation_nine(losses):
    """sigma_{t+1} = beta sigma_t if J(t-3) > J(t-2) > J(t-1) > J(t), J before the first round being infinite."""
    j, expected, factor = [math.inf, math.inf, math.inf, *losses], [], 1.0
    for t in range(3, len(j)):
        if j[t - 3] > j[t - 2] > j[t - 1] > j[t]:
            factor *= 0.5
        expected.append(factor)
    assert factors("falling_loss", losses) == expected


def test_a_plateau_is_a_fall_below_the_threshold_or_a_rise():
    assert factors("plateau", [3.0, 2.0, 1.9995, 2.5, 2.0], noise_threshold=1e-3) == [
        1,
        1,
        0.5,
        0.25,
        0.25,
    ]


def test_noise_falls_no_further_than_a_gate_between_machines_lets_pass():
    least = factors("plateau", [1.0] * 40)[-1]
    Gate(lambda payload: None, {}, rounds=1).answer(
        Payload({}, {"round": 1, "noise_factor": least})
    )


@pytest.mark.parametrize("control", ["falling_loss", "plateau"])
def test_a_decay_of_one_is_no_decay(control):
    assert factors(control, [4.0, 3.0, 2.0, 1.0, 1.0, 1.0], noise_decay=1.0) == [1] * 6
