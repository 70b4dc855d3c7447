import math

import numpy as np
import pytest
import torch
from blocks import DPSGD

from pipelines.config.dp import Dpsgd
from pipelines.federation.dp import optimisers


def run(kind: str, gradients: list[float], variances: list[float], **changes) -> list[float]:
    """Returns the values of one weight that begins at 0, after each step."""
    weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    settings = Dpsgd(**{**DPSGD, "optimiser": kind, "learning_rate": 0.1, **changes})
    optimiser, places = optimisers.build([weight], settings), []
    for gradient, variance in zip(gradients, variances):
        weight.grad = torch.full_like(weight, gradient)
        optimiser.step(variance)
        places.append(weight.item())
    return places


GRADIENTS = [1.0, -0.5, 2.0, 0.25]


def test_sgd_by_hand():
    assert run("sgd", GRADIENTS, [0.0] * 4) == pytest.approx(list(-0.1 * np.cumsum(GRADIENTS)))
    assert run("sgd", [1.0, 1.0], [0.0] * 2, momentum=0.5) == pytest.approx([-0.1, -0.1 - 0.15])


def test_adam_is_torch_s():
    weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    theirs, places = torch.optim.Adam([weight], lr=0.1), []
    for gradient in GRADIENTS:
        weight.grad = torch.full_like(weight, gradient)
        theirs.step()
        places.append(weight.item())
    assert run("adam", GRADIENTS, [9.0] * 4) == pytest.approx(places)


def test_without_noise_the_corrected_adam_is_adam():
    assert run("adam_corrected", GRADIENTS, [0.0] * 4) == pytest.approx(
        run("adam", GRADIENTS, [0.0] * 4), rel=1e-6
    )


def test_the_corrected_adam_by_hand():
    """Variances that differ: the second moment loses their own moving average."""
    gradients, variances = [4.0, 3.0], [1.0, 0.25]
    m, v, noise, place, expected = 0.0, 0.0, 0.0, 0.0, []
    for number, (gradient, variance) in enumerate(zip(gradients, variances), start=1):
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        noise = 0.999 * noise + 0.001 * variance
        square = (v - noise) / (1 - 0.999**number)
        assert square > 3 * np.sqrt(2) * noise / (1 - 0.999**number), "above the floor"
        place -= 0.1 * m / (1 - 0.9**number) / np.sqrt(square)
        expected.append(place)
    assert run("adam_corrected", gradients, variances) == pytest.approx(expected)


def test_what_is_taken_off_is_the_noise_and_no_more():
    """The second moment of a gradient of 0.5 under noise of deviation 2 comes out near 0.25, where Adam has 4.25."""
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.zeros(4000))
    optimiser = optimisers.CorrectedAdam([weight], lr=0.0)
    for _ in range(50):
        weight.grad = 0.5 + 2 * torch.randn(4000)
        optimiser.step(4.0)
    scale = 1 - 0.999**50
    assert (optimiser.state[weight]["v"].mean() / scale).item() == pytest.approx(4.25, rel=0.05)
    own = optimiser.state[weight]["v"].mean() - optimiser.param_groups[0]["noise"]
    assert (own / scale).item() == pytest.approx(0.25, abs=0.1)


def test_a_second_moment_below_the_noise_is_held_at_the_floor():
    """The floor is that of one square of noise, whose deviation is sqrt(2) of its mean."""
    (place,) = run("adam_corrected", [1e-3], [0.25])
    assert place == pytest.approx(-0.1 * 1e-3 / np.sqrt(3 * np.sqrt(2) * 0.25))


def test_the_floor_by_hand_where_variances_differ():
    """There are two steps, whose gradients are zero and next to nothing."""
    first, second = run("adam_corrected", [0.0, 1e-3], [1.0, 0.25])
    deviation = np.sqrt(2 * (0.000999**2 * 1.0 + 0.001**2 * 0.25**2)) / (1 - 0.999**2)
    assert second - first == pytest.approx(
        -0.1 * (0.1 * 1e-3 / (1 - 0.9**2)) / np.sqrt(3 * deviation)
    )


@pytest.mark.parametrize(
    "variances", [[4.0] * 300, list(0.98 ** np.arange(100)), [25.0] * 5 + [0.01] * 50]
)
def test_the_floor_follows_what_chance_leaves_of_noise(variances):
    """Hardly one weight that sees noise alone is above the floor, whatever became of the noise.

    Many are above a third of it.
    """
    weight = torch.nn.Parameter(torch.zeros(20_000))
    optimiser, rng = optimisers.CorrectedAdam([weight], lr=0.0), torch.Generator().manual_seed(0)
    for variance in variances:
        weight.grad = math.sqrt(variance) * torch.randn(20_000, generator=rng)
        optimiser.step(variance)
    (group,) = optimiser.param_groups
    left = optimiser.state[weight]["v"] - group["noise"]
    spread = math.sqrt(2 * group["squared"])
    assert left.std().item() == pytest.approx(spread, rel=0.05)
    assert (left > optimisers.DEVIATIONS * spread).float().mean() < 0.02


def test_a_weight_without_a_gradient_hardly_moves_where_the_noise_is_known():
    """It moves at most sqrt(1 / (3 x 0.03)) = 3.3 times Adam's steps in the long run.

    Over a floor of 1e-8 it would be thousands.
    """
    torch.manual_seed(0)
    plain, corrected = (torch.nn.Parameter(torch.zeros(2000)) for _ in "ab")
    pair = optimisers.Adam([plain], lr=0.1), optimisers.CorrectedAdam([corrected], lr=0.1)
    for _ in range(300):
        plain.grad = corrected.grad = 2 * torch.randn(2000)
        for optimiser in pair:
            optimiser.step(4.0)
    assert 1 < (corrected.std() / plain.std()).item() < 3.3
