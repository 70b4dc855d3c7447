"""Estimates the moments of `dp_moments` from its two noisy releases, which is post-processing."""

import math

import numpy as np

from pipelines.config.generators import DpMoments
from pipelines.synthesis.dp_moments_sums import symmetric, vech, weights

# a class is kept where its noisy count exceeds so many noise deviations
KEEP = 1.5
LEAST_COUNT = 2.0


def estimate_means(
    first: np.ndarray, settings: DpMoments, parts: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns means [K, p] and counts [K], read from release 1 [K, p + 1].

    Args:
        first: Release 1.
        settings: `clip` and `count_weight` apply.
        parts: The coefficients' positions, from `parts_of`. Those of the first part have a mean.
    """
    w0, w1 = weights(settings)
    counts = first[:, -1] / w1
    means = settings.clip * first[:, :-1] / (w0 * np.maximum(counts, LEAST_COUNT)[:, None])
    for part in parts[1:]:
        means[:, part] = 0.0
    return means, counts


def keep_classes(counts: np.ndarray, deviation: float, threshold: float = KEEP) -> np.ndarray:
    """Returns the label histogram for sampling: classes that stand out of the noise, normalised.

    Args:
        counts: Noisy counts [K].
        deviation: The standard deviation of their noise.
        threshold: A class needs more than so many deviations. If none has, the largest remains.

    >>> keep_classes(np.array([30.0, 10.0, 1.0]), deviation=2.0)
    array([0.75, 0.25, 0.  ])
    """
    selected = np.where(counts > threshold * deviation, counts, 0.0)
    if not selected.any():
        selected = np.eye(len(counts))[np.argmax(counts)]
    return selected / selected.sum()


def estimate_roots(
    second: np.ndarray,
    counts: np.ndarray,
    selected: np.ndarray,
    sigma: float,
    settings: DpMoments,
    parts: list[np.ndarray],
) -> np.ndarray:
    """Returns roots L of the covariances M = L L^T.

    Covariances are shrunk towards the pooled one, and their eigenvalues are debiased, each part of
    the coefficients by itself. Between two parts they are zero.

    Args:
        second: Release 2 [K, p (p + 1) / 2].
        counts: Noisy counts [K].
        selected: bool [K], the classes that are sampled. The others get a root of zero.
        sigma: The noise of release 2.
        settings: `residual_clip` and `inflation` apply.
        parts: The coefficients' positions, from `parts_of`.

    Returns:
        Roots [K, p, p].
    """
    p = sum(map(len, parts))
    upper = vech(p)
    roots = np.zeros((len(second), p, p))
    for part in parts:
        within = np.isin(upper.row, part) & np.isin(upper.column, part)
        of_part = _roots_of_part(second[:, within], counts, selected, sigma, settings)
        roots[:, part[:, None], part] = of_part
    return roots


def _roots_of_part(
    second: np.ndarray,
    counts: np.ndarray,
    selected: np.ndarray,
    sigma: float,
    settings: DpMoments,
) -> np.ndarray:
    """Returns the roots of one part's covariances, as `estimate_roots`."""
    size = np.maximum(counts, LEAST_COUNT)
    moments = settings.residual_clip**2 * np.stack(list(map(symmetric, second)))
    # standard deviation on the diagonal; it is smaller by sqrt 2 off the diagonal
    noise = sigma * settings.residual_clip**2
    covariances = moments / size[:, None, None]
    total = size[selected].sum()
    pooled = moments[selected].sum(0) / total
    roots = np.zeros_like(moments)
    for label in np.flatnonzero(selected):
        weight = _empirical_bayes(covariances[label] - pooled, noise / size[label])
        own_part = weight / size[label]
        pool_part = (1 - weight) / total
        # this class's noise enters both terms of the mixture, the other classes' only the pool
        variances = own_part**2 + 2 * own_part * pool_part + selected.sum() * pool_part**2
        deviation = noise / math.sqrt(2) * math.sqrt(variances)
        mixed = weight * covariances[label] + (1 - weight) * pooled
        roots[label] = _debiased_root(mixed, deviation, settings.inflation)
    return roots


def _empirical_bayes(difference: np.ndarray, noise: float) -> float:
    """Returns the weight of a class's own covariance.

    It is the share of the squared distance to the pool, [p, p], that is not noise.
    """
    distance = np.sum(difference**2)
    return max(0.0, 1 - len(difference) ** 2 / 2 * noise**2 / distance) if distance > 0 else 0.0


def _debiased_root(matrix: np.ndarray, deviation: float, inflation: float) -> np.ndarray:
    """Returns a root whose eigenvalues are freed of noise (spiked Wigner).

    Eigenvalues below the noise edge 2 sd sqrt p vanish, those above shrink.
    """
    values, vectors = np.linalg.eigh(matrix)
    edge = 2 * deviation * math.sqrt(len(values))
    shrunk = (values + np.sqrt(np.maximum(values**2 - edge**2, 0))) / 2
    signal = np.where(values > edge, shrunk, 0.0)
    return vectors * np.sqrt(inflation * signal)
