"""Privacy noise: the right law, with controls that a wrong scale fails, and never from a seed.

The tests of the law draw real entropy; each fails by chance about once in a million runs. What each mechanism makes of
this noise is tested in tests/pipelines/test_noise_matrix.py.
"""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest

from pipelines.privacy.noise import OsEntropy, SeededForTests, source

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


@pytest.mark.parametrize("factor", [2 / 3, 3 / 2, 0.9])  # 0.95 passes one time in a few
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


def test_torch_noise_cannot_be_found_among_the_32_bit_seeds():
    """torch's CPU generator uses 32 bits of a seed: four thousand million streams, which an attacker can list."""
    generator = OsEntropy().torch_generator("cpu")
    guess = torch.Generator().manual_seed(generator.initial_seed() % 2**32)
    assert not torch.equal(torch.randn(100, generator=generator), torch.randn(100, generator=guess))


def test_every_bit_of_the_mersenne_state_is_entropy():
    """Against the state that torch made of the seed: of 64 draws, some flip each of the 624 x 32 bits and some do not.

    By chance one bit of the 19968 misses that in 2e-15 of runs. Words within a state differ, or few were drawn.
    """
    flipped = []
    for _ in range(64):
        drawn = OsEntropy().torch_generator("cpu")
        words, seeded = (mersenne_words(one) for one in (drawn, torch.Generator().manual_seed(drawn.initial_seed())))
        assert len(np.unique(words)) > 615
        flipped.append(np.unpackbits((words ^ seeded).view(np.uint8)))
    share = np.mean(flipped, axis=0)
    assert share.shape == (624 * 32,)
    assert share.min() > 0 and share.max() < 1


def mersenne_words(generator: torch.Generator) -> np.ndarray:
    """uint32 [624]: torch's layout is the seed, two counters in three 64-bit words, then a word in each 64 bits."""
    words = generator.get_state().numpy().view(np.uint64)[3 : 3 + 624]
    assert words.max() < 2**32
    return words.astype(np.uint32)


def test_the_stream_is_that_of_the_drawn_state():
    """Number by number the output, modulo 2**16, of a naive Mersenne Twister that starts from these words."""
    generator = OsEntropy().torch_generator("cpu")
    naive = np.random.RandomState()
    naive.set_state(("MT19937", mersenne_words(generator), 624))
    drawn = torch.empty(2000, dtype=torch.int64).random_(0, 2**16, generator=generator).numpy()
    np.testing.assert_array_equal(drawn, naive.randint(0, 2**32, 2000, dtype=np.uint32) % 2**16)


def test_lots_are_uniform():
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
