"""Privacy noise: the right law, with controls that a wrong scale fails, and never from a seed.

The tests of the law draw real entropy; each fails by chance about once in a million runs. What each mechanism makes of
this noise is tested in tests/pipelines/test_noise_matrix.py.
"""

import multiprocessing
import ssl

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from pipelines.privacy.noise import WIDEST, OsEntropy, SeededForTests, source

DRAWS = 20_000
SIGMA = 50.0
UNLIKELY = 1e-6


def law_pvalue(draws: np.ndarray, sigma: float) -> float:
    """Returns the p-value of integer draws against the discrete Gaussian's exact masses.

    It is a chi-square test in about forty equal bins.
    """
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


@pytest.mark.parametrize("noise", [OsEntropy(), SeededForTests(0)])
def test_noise_that_64_bits_do_not_hold_is_not_drawn(noise):
    """A draw that ended at the edge would show the total that is added to it."""
    edges = np.iinfo(np.int64)
    widest = noise.discrete_gaussian((2000,), WIDEST)
    assert edges.min / 2 < widest.min() < 0 < widest.max() < edges.max / 2
    for sigma in (2 * WIDEST, 2.0**64, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="outgrows 64 bits"):
            noise.discrete_gaussian((1,), sigma)


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


def test_continuous_draws_have_their_laws():
    uniform, normal = OsEntropy().uniform(DRAWS), OsEntropy().normal((DRAWS // 4, 4))
    assert normal.shape == (DRAWS // 4, 4) and uniform.dtype == normal.dtype == np.float64
    assert kstest(uniform, "uniform").pvalue > UNLIKELY
    assert kstest(normal.ravel(), "norm").pvalue > UNLIKELY
    assert abs(np.corrcoef(normal.ravel()[1:], normal.ravel()[:-1])[0, 1]) < 6 / np.sqrt(DRAWS)


@pytest.mark.parametrize("byte", [0, 255])
def test_no_entropy_makes_an_infinite_draw(monkeypatch, byte):
    monkeypatch.setattr(
        "pipelines.privacy.noise.ssl.RAND_bytes", lambda count: bytes([byte]) * count
    )
    assert OsEntropy().uniform(3).min() > 0 and OsEntropy().uniform(3).max() < 1
    assert 8 < abs(OsEntropy().normal((1,)).item()) < 9


def test_continuous_draws_are_openssls(monkeypatch):
    """52 bits of every eight bytes that its generator gives, none twice, and no generator in between whose state could
    leak."""
    asked, real = [], ssl.RAND_bytes
    monkeypatch.setattr(
        "pipelines.privacy.noise.ssl.RAND_bytes",
        lambda count: asked.append(real(count)) or asked[-1],
    )
    drawn = OsEntropy().uniform(1000)
    words = np.frombuffer(asked[0], np.uint64) >> np.uint64(12)
    np.testing.assert_array_equal(drawn * 2.0**52 - 0.5, words.astype(np.float64))
    assert OsEntropy().normal((5, 2)).shape == (5, 2) and [len(got) for got in asked] == [8000, 80]


def test_the_operating_system_renews_the_generator_before_each_draw(monkeypatch):
    """A machine that is cloned while it runs would repeat its noise, were the state all that the noise comes from."""
    order, entropy, added, real = [], [], ssl.RAND_add, ssl.RAND_bytes

    def add(given: bytes, bits: float) -> None:
        entropy.append((given, bits))
        added(order.append("renewed") or given, bits)

    monkeypatch.setattr("pipelines.privacy.noise.ssl.RAND_add", add)
    monkeypatch.setattr(
        "pipelines.privacy.noise.ssl.RAND_bytes", lambda count: order.append("drawn") or real(count)
    )
    OsEntropy().normal((3,))
    OsEntropy().uniform(3)
    assert order == ["renewed", "drawn"] * 2
    assert len({given for given, _ in entropy}) == 2 and {
        (len(given), size) for given, size in entropy
    } == {(32, 32)}


def test_processes_that_come_of_one_draw_other_noise():
    """The processes are forked, with all of the generator's state."""
    OsEntropy().uniform(1)
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        drawn = [*pool.map(_drawn, range(4), chunksize=1), _drawn(4)]
    assert len({tuple(own) for own in drawn}) == 5


def _drawn(_: int) -> list[float]:
    return OsEntropy().uniform(2).tolist()


def test_seeded_noise_repeats_and_guarantees_nothing():
    first, again, other = (
        SeededForTests(seed).discrete_gaussian((30,), SIGMA) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert SeededForTests(1).guarantee == "none"
    assert "no guarantee" in SeededForTests(1).source
    for draw in ("normal", "uniform"):
        one, two = (
            getattr(SeededForTests(3), draw)((4,) if draw == "normal" else 4) for _ in range(2)
        )
        np.testing.assert_array_equal(one, two)


def test_seeded_noise_has_the_same_scale_as_the_real_one():
    assert law_pvalue(SeededForTests(0).discrete_gaussian((DRAWS,), SIGMA), SIGMA) > UNLIKELY


def test_the_seed_reaches_only_the_test_source():
    formal = source("os_entropy", test_seed=1)
    assert formal.guarantee == "formal"
    drawn = [
        source("os_entropy", test_seed=1).discrete_gaussian((50,), SIGMA).tolist() for _ in range(2)
    ]
    assert drawn[0] != drawn[1]
    assert source("seeded_for_tests", test_seed=5).seed == 5
