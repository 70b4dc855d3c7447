"""Tests `dp_moments` after its releases: counts, shrinkage and eigenvalues, all post-processing."""

import itertools
import math

import numpy as np
import pytest

from pipelines.synthesis import dp_moments_estimates, dp_moments_sums


def whole(p: int) -> list[np.ndarray]:
    """Returns all coefficients as one part."""
    return [np.arange(p)]


def test_means_divide_by_the_noisy_count_and_never_by_less_than_two(moments_settings):
    block = moments_settings()
    w0, w1 = 1 / math.sqrt(1.25), 0.5 / math.sqrt(1.25)
    first = np.array([[4.0, -2.0, 10 * w1], [4.0, -2.0, -3 * w1]])
    means, counts = dp_moments_estimates.estimate_means(first, block, whole(2))
    np.testing.assert_allclose(counts, [10, -3])
    np.testing.assert_allclose(means[0], block.clip * np.array([4, -2]) / (w0 * 10))
    np.testing.assert_allclose(means[1], block.clip * np.array([4, -2]) / (w0 * 2))


def test_a_class_is_kept_where_its_count_exceeds_one_and_a_half_deviations():
    np.testing.assert_allclose(
        dp_moments_estimates.keep_classes(np.array([9.0, 1.4, 1.6, -5.0]), 1.0),
        [9 / 10.6, 0, 1.6 / 10.6, 0],
    )
    np.testing.assert_allclose(
        dp_moments_estimates.keep_classes(np.array([0.1, 0.3, -1]), 1.0), [0, 1, 0]
    )


def wigner(p: int, deviation: float, rng) -> np.ndarray:
    """Draws symmetric noise with `deviation` off the diagonal and sqrt 2 of it on the diagonal."""
    return (
        np.triu(rng.normal(0, deviation, (p, p)), 1)
        + np.diag(rng.normal(0, deviation / math.sqrt(2), p))
        + 0.0
    )


def symmetric_noise(p: int, deviation: float, rng) -> np.ndarray:
    half = wigner(p, deviation, rng)
    return half + half.T


def test_eigenvalues_of_pure_noise_vanish():
    rng = np.random.default_rng(0)
    for _ in range(5):
        noise = symmetric_noise(80, 0.7, rng)
        root = dp_moments_estimates._debiased_root(noise, 0.7, 1.0)
        positive = np.linalg.eigvalsh(noise).clip(0).sum()
        assert np.trace(root @ root.T) < 0.05 * positive
    halved = dp_moments_estimates._debiased_root(
        noise, 0.35, 1.0
    )  # control: half the edge lets much of the noise through
    assert np.trace(halved @ halved.T) > 0.3 * positive


def test_a_spike_above_the_edge_is_recovered_without_bias():
    rng = np.random.default_rng(1)
    p, deviation, spike = 100, 0.1, 3.0
    direction = np.ones(p) / math.sqrt(p)
    raw, mended = [], []
    for _ in range(10):
        matrix = spike * np.outer(direction, direction) + symmetric_noise(p, deviation, rng)
        root = dp_moments_estimates._debiased_root(matrix, deviation, 1.0)
        raw.append(np.linalg.eigvalsh(matrix)[-1])
        mended.append(np.linalg.eigvalsh(root @ root.T)[-1])
    assert np.mean(mended) == pytest.approx(spike, rel=0.02)
    assert np.mean(raw) > spike * 1.07


def test_debiasing_without_noise_is_the_identity_and_inflation_scales_the_covariance():
    matrix = np.diag([3.0, 1.0, 0.5])
    root = dp_moments_estimates._debiased_root(matrix, 0.0, 1.8)
    np.testing.assert_allclose(root @ root.T, 1.8 * matrix, atol=1e-12)


def test_empirical_bayes_weight_limits():
    rng = np.random.default_rng(0)
    difference = rng.normal(size=(40, 40))
    assert dp_moments_estimates._empirical_bayes(difference, 0.0) == 1.0
    assert dp_moments_estimates._empirical_bayes(difference, 1e6) == 0.0
    assert dp_moments_estimates._empirical_bayes(np.zeros((40, 40)), 1.0) == 0.0
    # nothing but noise (deviation 1 on the diagonal): nearly all of the pool; signal of the noise's size: half
    noise = symmetric_noise(40, 1 / math.sqrt(2), rng)
    signal = symmetric_noise(40, 1 / math.sqrt(2), rng)
    assert dp_moments_estimates._empirical_bayes(noise, 1.0) < 0.15
    assert dp_moments_estimates._empirical_bayes(noise + signal, 1.0) == pytest.approx(
        0.5, abs=0.12
    )


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_the_noise_edge_is_the_deviation_of_the_mixed_covariance(
    monkeypatch, moments_settings, weight
):
    """The oracle is Monte Carlo over pure noise, at fixed weight.

    Entries off the diagonal scatter by the given deviation.
    """
    p, sigma, repeats = 8, 0.9, 400
    block = moments_settings(residual_clip=1.3)
    counts, kept = np.array([30.0, 80.0, 1.0, 50.0]), np.array([True, True, False, True])
    seen: dict[int, list] = {0: [], 1: [], 3: []}
    expected = {}
    order = itertools.cycle(seen)

    def capture(matrix, deviation, inflation):
        label = next(order)
        seen[label].append(matrix[np.triu_indices(p, 1)])
        expected[label] = deviation
        return np.zeros((p, p))

    monkeypatch.setattr(dp_moments_estimates, "_debiased_root", capture)
    monkeypatch.setattr(dp_moments_estimates, "_empirical_bayes", lambda difference, noise: weight)
    rng = np.random.default_rng(0)
    for _ in range(repeats):
        noise = rng.normal(0, sigma, (4, p * (p + 1) // 2))
        dp_moments_estimates.estimate_roots(noise, counts, kept, sigma, block, whole(p))
    for label, entries in seen.items():
        assert np.std(entries) == pytest.approx(expected[label], rel=0.05)


def test_pooling_is_weighted_by_counts_over_the_kept_classes_only(monkeypatch, moments_settings):
    monkeypatch.setattr(dp_moments_estimates, "_empirical_bayes", lambda difference, noise: 0.0)
    block = moments_settings(residual_clip=1.0)
    upper = dp_moments_sums.vech(2)
    moments = [np.diag([40.0, 20.0]), np.diag([10.0, 10.0]), np.diag([1e6, 1e6])]
    second = np.stack([matrix[upper.row, upper.column] * upper.weight for matrix in moments])
    kept = np.array([True, True, False])
    roots = dp_moments_estimates.estimate_roots(
        second, np.array([20.0, 5.0, 9.0]), kept, 0.0, block, whole(2)
    )
    for label in (0, 1):
        np.testing.assert_allclose(roots[label] @ roots[label].T, np.diag([50 / 25, 30 / 25]))
    assert not roots[2].any()
