"""Tests one teacher's vote: its form, its sensitivity by brute force, its expectation, and which
record reaches which teacher.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.synthesis.datalens import votes

PLAIN = {"clip": 0.0, "stochastic": False}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@settings(deadline=None, max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 9),
    size=st.sampled_from([0.0, 1e-38, 1e-6, 1.0, 1e30]),
    clip=st.sampled_from([0.0, 1e-5, 1.0]),
    stochastic=st.booleans(),
    spoil=st.sampled_from([None, math.nan, math.inf, -math.inf]),
    data=st.data(),
)
def test_a_vote_has_exactly_k_entries_of_one_in_magnitude(
    seed, d, size, clip, stochastic, spoil, data
):
    """This holds for any gradient.

    The sensitivity must not depend on its being finite or different from zero.
    """
    k = data.draw(st.integers(1, d))
    gradients = torch.randn(2, 3, d, generator=generator(seed)) * size
    if spoil is not None:
        gradients[0, 0] = spoil
        gradients[1, 2, 0] = spoil
    ballots = votes.vote(
        gradients, top_k=k, clip=clip, stochastic=stochastic, generator=generator(1)
    )
    assert ballots.shape == gradients.shape and ballots.dtype == torch.int8
    assert set(ballots.unique().tolist()) <= {-1, 0, 1}
    assert torch.all((ballots != 0).sum(-1) == k)


@pytest.mark.parametrize("d, k", [(1, 1), (3, 1), (3, 2), (3, 3), (4, 2)])
def test_the_largest_distance_between_two_votes_is_two_root_k(d, k):
    """The oracle is brute force over all votes that a grid of gradients can produce."""
    grid = torch.tensor(list(itertools.product([-2.0, -1.0, 1.0, 2.0], repeat=d)))
    possible = votes.vote(grid, top_k=k, generator=generator(), **PLAIN).unique(dim=0).double()
    assert len(possible) == math.comb(d, k) * 2**k
    assert torch.cdist(possible, possible).max().item() == pytest.approx(2 * math.sqrt(k))
    assert votes.sensitivity(top_k=k, batch=1) == pytest.approx(2 * math.sqrt(k))


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_the_sum_over_teachers_moves_by_two_root_k_b_when_one_teacher_changes(batch):
    """The oracle is brute force over one teacher's ballots on a batch, between teachers that do not
    change.
    """
    d, k = 2, 1
    grid = torch.tensor(list(itertools.product([-2.0, -1.0, 1.0, 2.0], repeat=d)))
    single = votes.vote(grid, top_k=k, generator=generator(), **PLAIN).unique(dim=0)
    others = votes.vote(
        torch.randn(4, batch, d, generator=generator(2)), top_k=k, generator=generator(), **PLAIN
    )
    sums = [
        votes.tally(torch.cat([others, torch.stack(ballots)[None]])).ravel()
        for ballots in itertools.product(single, repeat=batch)
    ]
    largest = max(np.linalg.norm(a - b) for a, b in itertools.product(sums, repeat=2))
    assert largest == pytest.approx(2 * math.sqrt(k * batch))
    assert votes.sensitivity(top_k=k, batch=batch) == pytest.approx(largest)


def test_the_k_largest_magnitudes_get_their_own_signs():
    gradients = torch.tensor([[0.1, -5.0, 2.0, -0.3], [9.0, 1.0, -8.0, 7.0]])
    ballots = votes.vote(gradients, top_k=2, generator=generator(), **PLAIN)
    assert ballots.tolist() == [[0, -1, 1, 0], [1, 0, -1, 0]]


def mean_sign(
    gradient: list[float], *, clip: float, stochastic: bool = True, repeats: int = 40_000
) -> np.ndarray:
    gradients = torch.tensor(gradient).expand(repeats, -1)
    ballots = votes.vote(
        gradients, top_k=len(gradient), clip=clip, stochastic=stochastic, generator=generator(3)
    )
    return ballots.double().mean(0).numpy()


GRADIENT = [0.8, -0.4, 0.1, 0.0, -0.05]
SIX_SIGMA = 6 / math.sqrt(40_000)


@pytest.mark.parametrize("clip", [0.0, 0.2, 5.0])
def test_the_stochastic_sign_is_unbiased_in_the_clipped_normalised_gradient(clip):
    bound = min(0.8, clip) if clip else 0.8
    expected = np.clip(GRADIENT, -bound, bound) / bound
    assert np.abs(mean_sign(GRADIENT, clip=clip) - expected).max() < SIX_SIGMA


def test_control_the_plain_sign_and_other_clips_are_told_apart():
    expected = np.array(GRADIENT) / 0.8
    assert np.abs(mean_sign(GRADIENT, clip=0.0, stochastic=False) - expected).max() > 0.4
    assert np.abs(mean_sign(GRADIENT, clip=0.6) - expected).max() > SIX_SIGMA


def test_signs_of_different_coordinates_and_images_are_drawn_apart():
    gradients = torch.tensor([1.0, 0.0, 0.0]).expand(20_000, 2, 3)
    ballots = votes.vote(
        gradients, top_k=3, clip=0.0, stochastic=True, generator=generator(4)
    ).double()
    free = ballots[:, :, 1:].reshape(-1, 4).numpy()
    correlation = np.corrcoef(free.T) - np.eye(4)
    assert np.abs(correlation).max() < 6 / math.sqrt(20_000)


def test_tally_counts_without_overflow():
    ballots = torch.ones(1000, 1, 2, dtype=torch.int8)
    ballots[:, :, 1] = -1
    assert votes.tally(ballots).tolist() == [[1000, -1000]]


def test_threshold_keeps_signs_beyond_beta_n():
    noisy = np.array([[7.0, -7.0, 6.0, 0.0, -12.0]])
    np.testing.assert_array_equal(votes.thresholded(noisy, 0.6, teachers=10), [[1, -1, 0, 0, -1]])
    assert votes.thresholded(noisy, None, teachers=10) is noisy


@settings(deadline=None, max_examples=60)
@given(
    ids=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=60, unique=True),
    teachers=st.integers(1, 50),
    data=st.data(),
)
def test_a_record_s_teacher_hangs_on_its_id_alone(ids, teachers, data):
    """Removing or reordering other records leaves it where it is; so teachers' records are disjoint and complete."""
    ids = np.array(ids)
    owner = votes.assign(ids, teachers, key=b"key")
    assert owner.shape == ids.shape and owner.dtype == np.int64
    assert owner.min() >= 0 and owner.max() < teachers
    keep = np.array(data.draw(st.permutations(range(len(ids)))))[
        : data.draw(st.integers(1, len(ids)))
    ]
    np.testing.assert_array_equal(votes.assign(ids[keep], teachers, key=b"key"), owner[keep])


def test_the_map_is_even_and_another_key_deals_anew():
    ids = np.arange(20_000)
    owner = votes.assign(ids, 20, key=b"a")
    assert np.abs(np.bincount(owner) - 1000).max() < 6 * math.sqrt(1000)
    assert np.mean(owner == votes.assign(ids, 20, key=b"b")) == pytest.approx(1 / 20, abs=0.01)


def test_no_records_have_no_teachers():
    assert votes.assign(np.empty(0, np.int64), 5, key=b"a").shape == (0,)


@pytest.mark.parametrize("signal", [0.0, 0.5, 3.0])
def test_signal_to_noise_is_estimated_from_noisy_sums_alone(signal):
    rng = np.random.default_rng(0)
    noisy = rng.choice([-1.0, 1.0], 40_000) * signal * 70 + rng.normal(0, 70, 40_000)
    assert votes.signal_to_noise(noisy, 70) == pytest.approx(
        signal, abs=0.12 if signal == 0 else 0.03
    )
    assert votes.signal_to_noise(noisy, 0) == math.inf


@pytest.mark.parametrize("shape, cutoff", [((4, 5, 2), 3), ((3, 3, 1), 1), ((2, 6, 1), 4)])
def test_smoothing_projects_on_the_low_cosines_of_each_channel(shape, cutoff):
    """The oracle is plain sums over an explicit basis of cosines."""
    height, width, channels = shape
    noisy = np.random.default_rng(0).normal(size=(3, channels * height * width))
    expected = np.zeros_like(noisy)
    for i, j in itertools.product(range(height), range(width)):
        if i + j < cutoff:
            rows = np.cos(math.pi * i * (2 * np.arange(height) + 1) / (2 * height))
            columns = np.cos(math.pi * j * (2 * np.arange(width) + 1) / (2 * width))
            wave = np.outer(rows, columns).ravel()
            wave /= np.linalg.norm(wave)
            for channel in range(channels):
                part = slice(channel * height * width, (channel + 1) * height * width)
                expected[:, part] += (noisy[:, part] @ wave)[:, None] * wave
    np.testing.assert_allclose(votes.smoothed(noisy, cutoff, shape), expected, atol=1e-12)


def test_smoothing_with_every_frequency_or_none_asked_changes_nothing():
    noisy = np.random.default_rng(0).normal(size=(2, 12))
    assert votes.smoothed(noisy, None, (3, 4, 1)) is noisy
    np.testing.assert_allclose(votes.smoothed(noisy, 6, (3, 4, 1)), noisy, atol=1e-12)
