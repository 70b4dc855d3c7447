"""Privacy noise: the right law, with controls that a wrong scale fails, and never from a seed.

The tests of the law draw real entropy; each fails by chance about once in a million runs.
"""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest

from pipelines.privacy.noise import MERSENNE_WORDS, OsEntropy, SeededForTests, source

DRAWS = 20_000
SIGMA = 50.0
UNLIKELY = 1e-6


def law_pvalue(draws: np.ndarray, sigma: float) -> float:
    """Chi-square of integer draws against the discrete Gaussian's exact masses, in about forty equal bins."""
    points = np.arange(-int(12 * sigma), int(12 * sigma) + 1)
    mass = np.exp(-(points**2) / (2 * sigma**2))
    mass /= mass.sum()
    cuts = np.unique(np.searchsorted(mass.cumsum(), np.linspace(0, 1, 41)[1:-1]))
    expected = np.array([part.sum() for part in np.split(mass, cuts)]) * draws.size
    observed, _ = np.histogram(draws, bins=[-np.inf, *(points[cuts] - 0.5), np.inf])
    return chisquare(observed, expected / expected.sum() * draws.size).pvalue


@pytest.fixture(scope="module")
def draws():
    return OsEntropy().discrete_gaussian((DRAWS,), SIGMA)


def test_noise_has_the_discrete_gaussian_law(draws):
    assert draws.dtype == np.int64
    assert law_pvalue(draws, SIGMA) > UNLIKELY


@pytest.mark.parametrize("factor", [2 / 3, 3 / 2, 0.95])
def test_control_noise_of_another_scale_is_rejected(draws, factor):
    assert law_pvalue(draws, SIGMA * factor) < UNLIKELY
    assert law_pvalue(OsEntropy().discrete_gaussian((DRAWS,), SIGMA * factor), SIGMA) < UNLIKELY


def test_control_shifted_or_missing_noise_is_rejected(draws):
    assert law_pvalue(draws + 5, SIGMA) < UNLIKELY
    assert law_pvalue(np.zeros(DRAWS, np.int64), SIGMA) < UNLIKELY


def test_noise_of_a_small_scale_is_discrete_gaussian_not_rounded():
    """At sigma 0.4 the discrete and the rounded Gaussian differ visibly: P(0) is 0.9192 against 0.7887."""
    zeros = np.mean(OsEntropy().discrete_gaussian((DRAWS,), 0.4) == 0)
    assert zeros == pytest.approx(0.9192, abs=6 * np.sqrt(0.9192 * 0.0808 / DRAWS))


def test_coordinates_are_uncorrelated(draws):
    centred = draws - draws.mean()
    for lag in (1, 2, 10):
        assert abs(np.mean(centred[lag:] * centred[:-lag]) / centred.var()) < 6 / np.sqrt(DRAWS)


def test_shape_is_kept():
    assert OsEntropy().discrete_gaussian((3, 4, 5), 10.0).shape == (3, 4, 5)


def test_two_draws_differ_and_no_global_seed_reaches_them():
    drawn = []
    for _ in range(3):
        np.random.seed(0)
        torch.manual_seed(0)
        drawn.append(OsEntropy().discrete_gaussian((50,), SIGMA).tolist())
    assert drawn[0] != drawn[1] != drawn[2] != drawn[0]


def test_torch_generators_differ_and_no_global_seed_reaches_them():
    drawn = []
    for _ in range(3):
        torch.manual_seed(0)
        drawn.append(torch.randn(20, generator=OsEntropy().torch_generator("cpu")).tolist())
    assert drawn[0] != drawn[1] != drawn[2] != drawn[0]


def test_torch_noise_cannot_be_found_among_the_32_bit_seeds():
    """torch's CPU generator uses 32 bits of a seed: four thousand million streams, which an attacker can list."""
    generator = OsEntropy().torch_generator("cpu")
    guess = torch.Generator().manual_seed(generator.initial_seed() % 2**32)
    assert not torch.equal(torch.randn(100, generator=generator), torch.randn(100, generator=guess))


def test_the_whole_mersenne_state_is_entropy():
    words = OsEntropy().torch_generator("cpu").get_state().numpy().view(np.uint64)[MERSENNE_WORDS]
    assert len(words) == 624 and words.max() < 2**32
    bits = np.unpackbits(words.astype(np.uint32).view(np.uint8).reshape(624, 4), axis=1)
    assert np.abs(bits.mean(0) - 0.5).max() < 6 * 0.5 / np.sqrt(624)


def test_torch_noise_is_standard_normal_with_a_wrong_scale_rejected():
    noise = torch.randn(DRAWS, generator=OsEntropy().torch_generator("cpu")).numpy()
    assert kstest(noise, "norm").pvalue > UNLIKELY
    assert kstest(noise * 2 / 3, "norm").pvalue < UNLIKELY
    lots = torch.rand(DRAWS, generator=OsEntropy().torch_generator("cpu")).numpy()
    assert kstest(lots, "uniform").pvalue > UNLIKELY


def test_seeded_noise_repeats_and_guarantees_nothing():
    first, again, other = (SeededForTests(seed).discrete_gaussian((30,), SIGMA) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert SeededForTests(1).guarantee == "none"
    assert "no guarantee" in SeededForTests(1).source
    generators = (SeededForTests(3).torch_generator("cpu") for _ in range(2))
    assert len({torch.rand(1, generator=generator).item() for generator in generators}) == 1


def test_seeded_noise_has_the_same_scale_as_the_real_one():
    assert law_pvalue(SeededForTests(0).discrete_gaussian((DRAWS,), SIGMA), SIGMA) > UNLIKELY


def test_the_seed_reaches_only_the_test_source():
    formal = source("os_entropy", test_seed=1)
    assert formal.guarantee == "formal"
    drawn = [source("os_entropy", test_seed=1).discrete_gaussian((50,), SIGMA).tolist() for _ in range(2)]
    assert drawn[0] != drawn[1]
    assert source("seeded_for_tests", test_seed=5).seed == 5
