"""Makes a public basis of scattering features: whitened principal directions of noise images.

The images are drawn from a constant seed. No record and no download enters, so that the basis costs
no privacy. A private linear head needs far fewer noisy steps on whitened features. Features are
r = (phi - m) V diag(w): m is the mean of the noise images' features phi, V holds the directions of
largest variance, and w_j = c (s_j / s_1)^-.75 for their standard deviations s_j. The constant c
makes the mean norm of the noise images' features 1.

>>> basis = make((8, 8, 1), images=200)
>>> basis.directions.shape, basis.mean.shape
((153, 324), (324,))
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from models.scattering import CHANNELS, SCALES, Scattering, normalised

# raised when the same shape would give another basis
VERSION = 1
# of the noise images, public and constant
SEED = 20_261
# noise images that a basis is made from
IMAGES = 5_000
# k, the most directions that a basis has
DIRECTIONS = 500
# of the standard deviations: 0 leaves them as they are, 1 makes all directions alike
WHITENING = 0.75
# times the largest standard deviation: directions below would be stretched by more than 10
FLOOR = 0.05
# share of the variance of a noise image that its colours have in common
COMMON = 0.8
# noise images that are made and transformed at once
AT_ONCE = 100


class Basis(NamedTuple):
    """Holds a basis as plain arrays, of which its file consists.

    Attributes:
        mean: m, float32 [D].
        directions: The columns of V as rows, float16 [k, D].
        weights: w, float32 [k].
    """

    mean: np.ndarray
    directions: np.ndarray
    weights: np.ndarray


def feature_count(shape: tuple[int, int, int]) -> int:
    """Returns D, the number of features of an image of this (height, width, channels).

    >>> feature_count((28, 28, 1))
    3969
    """
    height, width, channels = shape
    step = 2**SCALES
    return channels * CHANNELS * (height // step) * (width // step)


def make(shape: tuple[int, int, int], images: int = IMAGES, progress=iter) -> Basis:
    """Makes the basis for images of a shape: the same at each call.

    All sums are of double precision. What another machine rounds otherwise is far below the
    precision of the result.

    Args:
        shape: (height, width, channels) of an image.
        images: How many noise images it is made from.
        progress: Wraps the iterator over the batches of images, for a progress bar.
    """
    features = np.empty((images, feature_count(shape)))
    with torch.no_grad():
        scattering = Scattering(*shape[:2], dtype=torch.float64)
        done = 0
        for batch in progress(noise_images(shape, images)):
            features[done : done + len(batch)] = normalised(scattering(torch.from_numpy(batch)))
            done += len(batch)
    mean = features.mean(0)
    features -= mean
    deviations, directions = _principal(features, min(DIRECTIONS, *features.shape))
    large = deviations >= FLOOR * deviations[0]
    directions = _signed(directions[large]).astype(np.float16)
    weights = (deviations[large] / deviations[0]) ** -WHITENING
    projected = features @ directions.T.astype(np.float64) * weights
    weights /= np.linalg.norm(projected, axis=1).mean()
    return Basis(mean.astype(np.float32), directions, weights.astype(np.float32))


def noise_images(shape: tuple[int, int, int], count: int) -> Iterator[np.ndarray]:
    """Yields noise images, float64 [b, C, H, W] in [0, 1], in batches.

    An image is clip(n / 2 + b, 0, 1). Its noise n is smooth, with mean 0 and variance 1: the DCT
    coefficient (i, j) has a standard deviation proportional to (1 + hypot(i, j))^-a. Each image
    draws a from U(.5, 1.5) and b from U(-.3, .6). A colour's noise is partly that of all colours.

    Args:
        shape: (height, width, channels) of an image.
        count: How many images there are.
    """
    # a network of another kind must not wait for this import
    from scipy.fft import idctn

    height, width, channels = shape
    stream = np.random.default_rng(SEED)
    radii = 1 + np.hypot(np.arange(height)[:, None], np.arange(width))
    for start in range(0, count, AT_ONCE):
        size = min(AT_ONCE, count - start)
        exponents = stream.uniform(0.5, 1.5, (size, 1, 1, 1))
        brightness = stream.uniform(-0.3, 0.6, (size, 1, 1, 1))
        fields = 1 if channels == 1 else channels + 1
        draws = stream.standard_normal((size, fields, height, width)) / radii**exponents
        noise = idctn(draws, axes=(2, 3), norm="ortho")
        noise -= noise.mean((2, 3), keepdims=True)
        noise /= noise.std((2, 3), keepdims=True)
        if channels > 1:
            noise = COMMON**0.5 * noise[:, :1] + (1 - COMMON) ** 0.5 * noise[:, 1:]
        yield np.clip(noise / 2 + brightness, 0, 1)


def _principal(features: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the largest standard deviations [count], falling, and their directions [count, D].

    Args:
        features: [n, D], of mean 0.
        count: How many directions are wanted.
    """
    # takes half a second to import, and is only needed here
    from scipy.linalg import eigh

    images, size = features.shape
    wide = size > images
    products = features @ features.T if wide else features.T @ features
    last = len(products) - 1
    variances, vectors = eigh(
        products / images, subset_by_index=(last + 1 - count, last), overwrite_a=True
    )
    deviations = variances[::-1].clip(min=0) ** 0.5
    directions = vectors.T[::-1]
    if wide:
        directions = directions @ features
        directions /= np.linalg.norm(directions, axis=1, keepdims=True).clip(min=1e-300)
    return deviations, directions


def _signed(directions: np.ndarray) -> np.ndarray:
    """Returns the directions, each with its largest entry positive: an eigenvector has no sign."""
    largest = np.abs(directions).argmax(1)
    return directions * np.sign(directions[np.arange(len(directions)), largest])[:, None]
