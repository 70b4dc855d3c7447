"""Computes the two sums of `dp_moments` over records, and their code of images as coefficients.

An image is p low-frequency DCT coefficients u, clipped to the L2 norm `clip`. A record enters
`first_sum` and `second_sum` by a vector of L2 norm at most 1 each. Nothing here draws noise.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.fft import dctn, idctn

from pipelines.config.generators import DpMoments
from pipelines.privacy.discrete_gaussian import on_lattice
from pipelines.synthesis.base import Space

# records whose products are held at once
CHUNK = 500


def coefficients_of(settings: DpMoments, space: Space) -> int:
    """Returns p, the number of DCT coefficients of an image."""
    return len(_low_frequencies(settings.cutoff, space))


def parts_of(settings: DpMoments, space: Space) -> list[np.ndarray]:
    """Returns the positions of coefficients in parts between which no covariance is estimated.

    One part holds all. With `mirror`, the first part holds the coefficients that a left-right
    mirror leaves as they are, the second those whose sign it changes. If an image is as likely as
    its mirror image, those of the second part have no mean, and no covariance with the first.

    Args:
        settings: `cutoff` and `mirror` apply.
        space: The shape of the images.
    """
    kept = _low_frequencies(settings.cutoff, space)
    if not settings.mirror:
        return [np.arange(len(kept))]
    _, j, _ = np.indices(space.shape)
    is_odd = j.ravel()[kept] % 2 == 1
    return [np.flatnonzero(~is_odd), np.flatnonzero(is_odd)]


def encode(pixels: np.ndarray, settings: DpMoments, space: Space) -> np.ndarray:
    """Returns the low-pass orthonormal DCT of centred images, clipped to L2 norm `clip`.

    Args:
        pixels: Images [n, H, W, C] in [0, 1].
        settings: `centre`, `cutoff` and `clip` apply.
        space: The shape of the images.

    Returns:
        Coefficients [n, p].
    """
    coefficients = dctn(pixels.astype(np.float64) - settings.centre, axes=(1, 2), norm="ortho")
    flat = coefficients.reshape(len(pixels), math.prod(space.shape))
    return clipped(flat[:, _low_frequencies(settings.cutoff, space)], settings.clip)


def decode(u: np.ndarray, centre: float, cutoff: int, space: Space) -> np.ndarray:
    """Returns the images of coefficients: the inverse of `encode` on what it keeps.

    Args:
        u: Coefficients [n, p].
        centre: The grey level that `encode` subtracted.
        cutoff: The coefficients are those with i + j < cutoff.
        space: The shape of the images.

    Returns:
        Pixels [n, H, W, C], cut to [0, 1].
    """
    coefficients = np.zeros((len(u), math.prod(space.shape)))
    coefficients[:, _low_frequencies(cutoff, space)] = u
    centred = idctn(coefficients.reshape(-1, *space.shape), axes=(1, 2), norm="ortho")
    return np.clip(centred + centre, 0, 1)


def clipped(vectors: np.ndarray, norm: float) -> np.ndarray:
    """Returns the rows of vectors [n, p], scaled down to L2 norm `norm` where they exceed it.

    >>> clipped(np.array([[3.0, 4.0], [0.0, 0.5]]), norm=1.0)
    array([[0.6, 0.8],
           [0. , 0.5]])
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors * np.minimum(1.0, norm / np.maximum(lengths, 1e-12))


def first_sum(
    u: np.ndarray, labels: np.ndarray, settings: DpMoments, space: Space, scale: int
) -> np.ndarray:
    """Returns, per class, the sum of w0 u / C and w1 times the count.

    Args:
        u: Coefficients [n, p] from `encode`.
        labels: int64 [n].
        settings: `clip` is C; `count_weight` gives w0 and w1.
        space: The declared number of classes K.
        scale: Lattice steps per unit.

    Returns:
        int64 [K, p + 1], in lattice steps.
    """
    w0, w1 = weights(settings)
    records = np.concatenate([w0 * u / settings.clip, np.full((len(u), 1), w1)], axis=1)
    total = np.zeros((space.classes, records.shape[1]), np.int64)
    np.add.at(total, labels, on_lattice(records, scale))
    return total


def second_sum(
    u: np.ndarray, labels: np.ndarray, means: np.ndarray, settings: DpMoments, scale: int
) -> np.ndarray:
    """Returns, per class, the sum of vech(v v^T), off-diagonals times sqrt 2.

    Args:
        u: Coefficients [n, p] from `encode`.
        labels: int64 [n].
        means: Released means [K, p].
        settings: `residual_clip` is C2 in v = clip(u - m_y) / C2.
        scale: Lattice steps per unit.

    Returns:
        int64 [K, p (p + 1) / 2], in lattice steps.
    """
    v = clipped(u - means[labels], settings.residual_clip) / settings.residual_clip
    upper = vech(v.shape[1])
    total = np.zeros((len(means), len(upper.row)), np.int64)
    for label in range(len(means)):
        for chunk in np.array_split(v[labels == label], 1 + len(v) // CHUNK):
            products = chunk[:, upper.row] * chunk[:, upper.column] * upper.weight
            total[label] += on_lattice(products, scale).sum(0)
    return total


def weights(settings: DpMoments) -> tuple[float, float]:
    """Returns (w0, w1), the weights of coefficients and count, with w0^2 + w1^2 = 1."""
    norm = math.hypot(1.0, settings.count_weight)
    return 1 / norm, settings.count_weight / norm


class Vech(NamedTuple):
    """Holds rows, columns and weights of the upper triangle of a symmetric matrix."""

    row: np.ndarray
    column: np.ndarray
    weight: np.ndarray


def vech(p: int) -> Vech:
    """Returns the upper triangle of a p x p matrix.

    Off-diagonals weigh sqrt 2, so that |vech(v v^T)| = |v|^2.
    """
    row, column = np.triu_indices(p)
    return Vech(row, column, np.where(row == column, 1.0, math.sqrt(2)))


def symmetric(values: np.ndarray) -> np.ndarray:
    """Returns the matrix [p, p] with this weighted upper triangle."""
    p = (math.isqrt(8 * len(values) + 1) - 1) // 2
    upper = vech(p)
    matrix = np.zeros((p, p))
    matrix[upper.row, upper.column] = matrix[upper.column, upper.row] = values / upper.weight
    return matrix


def _low_frequencies(cutoff: int, space: Space) -> np.ndarray:
    """Returns flat positions [p] of the coefficients with i + j < cutoff, all channels."""
    i, j, _ = np.indices(space.shape)
    return np.flatnonzero((i + j < cutoff).ravel())
