import math

import numpy as np
import pytest
import torch
from blocks import DPSGD

from models import classifiers
from pipelines.config.dp import Dpsgd
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import dpsgd
from pipelines.federation.core.messages import Payload
from pipelines.privacy.noise import SeededForTests
from pipelines.privacy.per_sample import scaled_sum
from pipelines.training.tensors import state_of


def images(count):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (count, 8, 8, 1)).astype(np.uint8)
    return Images(pixels, rng.integers(0, 10, count), np.arange(count))


def network():
    return classifiers.build("mlp", shape=(8, 8, 1), classes=10, seed=0)


def client(count=30, epsilon=3.0, seed=0, **changes):
    own = dpsgd.new_account(epsilon, 1e-5, Dpsgd(**{**DPSGD, **changes}))
    return dpsgd.Client(network(), images(count), own, SeededForTests(seed))


START = Payload(state_of(network()))


def update(own, factor: float = 1.0):
    asked = {"noise_factor": factor, "local_steps": own.account.settings.local_steps}
    return answer(own, Payload(START.arrays, asked))


def answer(own, payload: Payload):
    return dpsgd.client_update(payload, own, own.account.settings)


def step_on(own, lot: torch.Tensor) -> float:
    """One noisy step on the records of `lot`, bool [n]; its signal-to-noise ratio."""
    clipped = scaled_sum(own.model, own.lot_of(lot))
    (ratio,) = dpsgd.take_steps(own, 1, clipped)
    return ratio


def moved(reply) -> np.ndarray:
    return np.concatenate(
        [(reply.arrays[name] - START.arrays[name]).ravel() for name in START.arrays]
    )


def test_the_budget_is_checked_before_it_is_spent():
    own = client()
    for _ in range(3):
        assert update(own) is not None
    assert own.account.steps == 6
    assert update(own) is None
    assert own.account.steps == 6


def test_a_client_takes_the_steps_that_are_left_and_leaves():
    own = client(epsilon=2.0, sampling_rate=0.05, noise_multiplier=1.0, local_steps=5, rounds=100)
    left = own.account.affordable
    assert 5 < left < 10
    assert [update(own).scalars["steps"] for _ in range(2)] == [5, left]
    assert update(own) is None


def test_an_empty_lot_is_noised_and_counted():
    own = client(count=0)
    reply = update(own)
    assert own.account.steps == 2
    # two steps of N(0, (z C)^2) / lot, learning rate 1
    expected = math.sqrt(2) * own.account.noise_multiplier * 0.5 / 10
    assert moved(reply).std() == pytest.approx(expected, rel=0.05)


def test_auto_s_noises_for_a_sensitivity_of_one():
    own = client(count=0, clipping="auto_s")
    expected = math.sqrt(2) * own.account.noise_multiplier / 10
    assert moved(update(own)).std() == pytest.approx(expected, rel=0.05)


def test_quantile_clipping_moves_its_norm_and_noises_by_it():
    own = client(count=0, clipping="quantile", local_steps=1)
    first = moved(update(own)).std()
    assert first == pytest.approx(own.account.noise_multiplier * 1.01 * 0.5 / 10, rel=0.05)
    norm = own.clip.norm
    second = moved(update(own)).std()
    assert norm != 0.5 and second / first == pytest.approx(norm / 0.5, rel=0.05)


def test_a_step_without_noise_is_the_clipped_gradient_over_the_expected_lot():
    own = client(epsilon=math.inf, sampling_rate=0.5)
    lot = torch.arange(30) < 4
    step_on(own, lot)
    expected = dict.fromkeys(START.arrays, 0.0)
    for image, label in zip(own.images[lot], own.labels[lot]):
        model = network()
        torch.nn.functional.cross_entropy(model(image[None]), label[None]).backward()
        norm = torch.sqrt(sum(p.grad.square().sum() for p in model.parameters()))
        for name, parameter in model.named_parameters():
            expected[name] -= parameter.grad.numpy() * min(1.0, 0.5 / norm.item()) / 10.0
    for name, array in state_of(own.model).items():
        np.testing.assert_allclose(array - START.arrays[name], expected[name], atol=1e-6)


def test_momentum_stays_at_the_client_from_round_to_round():
    """Two rounds take one step without noise, from the same weights.

    The second continues where the first went.
    """
    own = client(epsilon=math.inf, local_steps=1, sampling_rate=0.999, momentum=0.5)
    other = client(epsilon=math.inf, local_steps=1, sampling_rate=0.999, momentum=0.0)
    (first, second), (plain, _) = ([moved(update(one)) for _ in range(2)] for one in (own, other))
    np.testing.assert_allclose(first, plain, atol=1e-6)
    np.testing.assert_allclose(second, 1.5 * first, atol=1e-3)


@pytest.mark.parametrize("optimiser", ["adam", "adam_corrected"])
def test_adams_moments_stay_at_the_client_from_round_to_round(optimiser):
    """Two rounds without noise start from the same weights and are computed by hand.

    An Adam begun anew would make of the second gradient what it made of the first.
    """
    own = client(
        epsilon=math.inf, local_steps=1, optimiser=optimiser, learning_rate=0.01, sampling_rate=0.5
    )
    gradients, moves = [], []
    for _ in range(2):
        moves.append(moved(update(own)))
        gradients.append(np.concatenate([p.grad.numpy().ravel() for p in own.model.parameters()]))
    mean = (0.9 * 0.1 * gradients[0] + 0.1 * gradients[1]) / (1 - 0.9**2)
    square = (0.999 * 0.001 * gradients[0] ** 2 + 0.001 * gradients[1] ** 2) / (1 - 0.999**2)
    seen = square > 1e-7  # above what either adds or cuts at
    expected = -0.01 * mean[seen] / np.sqrt(square[seen])
    assert seen.mean() > 0.3
    np.testing.assert_allclose(moves[1][seen], expected, rtol=5e-3, atol=1e-5)
    assert (
        np.abs(moves[1][seen] - 0.01 * -np.sign(gradients[1][seen])).max() > 1e-3
    )  # of an Adam begun anew


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adam_corrected"])
@pytest.mark.parametrize("clipping", ["const", "quantile", "auto_s"])
def test_every_combination_repeats_under_its_stream_and_tells_what_it_may(optimiser, clipping):
    asked = {"optimiser": optimiser, "clipping": clipping, "learning_rate": 0.01}
    one, again, other = (client(seed=seed, **asked) for seed in (1, 1, 2))
    replies = [update(own) for own in (one, again, other)]
    assert (
        np.array_equal(moved(replies[0]), moved(replies[1]))
        and np.isfinite(moved(replies[0])).all()
    )
    assert not np.array_equal(moved(replies[0]), moved(replies[2]))
    told = {
        "steps",
        "epsilon_spent",
        "epsilon_by_pld",
        "signal_to_noise",
        "noise_multiplier",
        "clipping_norm",
        "left",
    }
    assert set(replies[0].scalars) == told
    assert -1 < replies[0].scalars["signal_to_noise"] < math.inf


def test_the_signal_to_noise_ratio_is_nought_without_records_and_infinite_without_noise():
    assert dpsgd.take_steps(client(count=0), 1) == [pytest.approx(0, abs=0.02)]
    assert dpsgd.take_steps(client(epsilon=math.inf), 1) == [math.inf]


def test_the_signal_to_noise_ratio_is_that_of_squared_norms():
    """The ratio is known from the same gradient without noise."""
    plain = client(epsilon=math.inf)
    lot = torch.ones(len(plain.labels), dtype=torch.bool)
    step_on(plain, lot)
    signal = sum(parameter.grad.square().sum().item() for parameter in plain.model.parameters())
    found = []
    for seed in range(40):
        noisy = client(seed=seed)
        found.append(step_on(noisy, lot))
    settings, multiplier = noisy.account.settings, noisy.account.noise_multiplier
    deviation = multiplier * settings.clipping_norm / settings.expected_lot
    size = sum(parameter.numel() for parameter in noisy.model.parameters())
    assert np.mean(found) == pytest.approx(
        signal / (size * deviation**2), abs=4 * np.std(found) / math.sqrt(40)
    )


def test_a_step_has_the_noise_that_was_entered_for_it():
    asked = {"noise_control": "plateau", "noise_multiplier": 4.0, "local_steps": 1, "rounds": 50}
    own, deviations = client(count=0, epsilon=8.0, **asked), []
    for factor in (1.0, 0.5, 0.25):
        reply = update(own, factor)
        deviations.append(moved(reply).std())
    assert deviations == pytest.approx([z * 0.5 / 10 for z in (4.0, 2.0, 1.0)], rel=0.05)
    assert [steps.noise_multiplier for steps in own.account.taken] == [4.0, 2.0, 1.0]


@pytest.mark.parametrize("clipping, norm", [("proxy", 0.2), ("const", 0.5)])
def test_by_proxy_the_norm_is_the_one_that_the_server_sent(clipping, norm):
    """The noise is in proportion to it."""
    own = client(count=0, clipping=clipping, local_steps=1)
    asked = {"noise_factor": 1.0, "local_steps": 1, "clipping_norm": 0.2}
    reply = answer(own, Payload(START.arrays, asked))
    assert reply.scalars["clipping_norm"] == norm
    assert moved(reply).std() == pytest.approx(own.account.noise_multiplier * norm / 10, rel=0.05)
