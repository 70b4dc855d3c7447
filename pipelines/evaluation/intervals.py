"""Computes bootstrap intervals of accuracies and of their differences, by scipy with its own seed.

The intervals are bias-corrected and accelerated (BCa, Efron 1987). Near an accuracy of 1 a client's
few dozen test images are skewed, and plain percentiles then cover too rarely (five parts of 37 to
55 images at 0.94 on average: 0.93 of 300 repetitions for percentiles, 0.96 for BCa at a level of
0.95; 0.93 and 0.94 at 400 images a part). No torch here: the report uses it.

An interval over images says how much the test images could have moved a figure of *this* run: not
what another seed, partition or draw of privacy noise would have given. `over_cells`, over many
runs, is for that.

Where the data cannot say, `low` and `high` are None, with no warning: resampling what does not vary
would give an interval of no width, which reads as certainty. That is one value only: all cells
equal or a single cell; every image of every client alike; a client with a single image. A client
whose images are all alike beside others that vary adds no width: the interval is then somewhat too
narrow.

>>> correct = {"c0": np.array([1, 1, 1, 0]), "c1": np.array([1, 0, 1, 0])}
>>> interval = of_mean(correct, seed=0)
>>> interval.value, interval.low < 0.625 < interval.high
(0.625, True)
>>> of_mean({"c0": np.array([1, 1, 1, 1])}, seed=0)
Interval(value=1.0, low=None, high=None)
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import bootstrap

LEVEL = 0.95
# an end then moves by about 3 % of the half-width between bootstrap seeds
RESAMPLES = 2000
# differences of equal accuracies may differ by less, and no two accuracies by so little
ROUNDING = 1e-12
# resamples in memory at once: 12,000 test images take 24 MB
BATCH = 250


class Interval(NamedTuple):
    """Holds a figure and its interval.

    Attributes:
        value: The figure itself.
        low, high: The ends of its LEVEL interval, or None where the data cannot say.
    """

    value: float
    low: float | None
    high: float | None


def of_mean(correct: Mapping[str, np.ndarray], *, seed: int) -> Interval:
    """Returns the mean accuracy over clients, each counting alike.

    Images are resampled within each client's test part.

    Args:
        correct: Per client bool [n]: True if the image of its test part was classified rightly.
        seed: The seed of the bootstrap.
    """
    strata = [np.asarray(correct[client], float) for client in sorted(correct)]
    return _of_strata(strata, seed)


def of_difference(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], *, seed: int
) -> Interval:
    """Returns the first method's mean accuracy over clients less the second's.

    Both are on the same images: differences are taken image by image, then as `of_mean`. It is too
    eager where few images differ: of two equally good methods with 4 differing images expected
    among 200, one seemed better in 0.10 of 800 repetitions and not in 0.05; with 20 expected, in
    0.05.

    Args:
        first: As `correct` of `of_mean`, of one method.
        second: The same of the other method.
        seed: The seed of the bootstrap.

    Raises:
        ValueError: The two have not the same clients and numbers of images.
    """
    first_sizes = _sizes(first)
    second_sizes = _sizes(second)
    if first_sizes != second_sizes:
        raise ValueError(
            f"Paired methods must have the same test images. Got {first_sizes} and {second_sizes} "
            "instead."
        )
    strata = []
    for client in sorted(first):
        strata.append(np.asarray(first[client], float) - np.asarray(second[client], float))
    return _of_strata(strata, seed)


def _sizes(correct: Mapping[str, np.ndarray]) -> dict[str, int]:
    return {client: len(images) for client, images in correct.items()}


def over_cells(differences: Mapping[tuple[int, str], float], *, seed: int) -> Interval:
    """Returns the mean of paired differences of two methods over runs.

    The unit is one client in one run. Cells of one run share its partition, noise and shared model.
    They are taken as independent, so that with few seeds the interval is too narrow where those
    sway all clients of a run alike.

    Args:
        differences: {(seed, client): accuracy of one method less the other's}.
        seed: The seed of the bootstrap.
    """
    return _of_strata([np.array([differences[cell] for cell in sorted(differences)], float)], seed)


def _of_strata(strata: list[np.ndarray], seed: int) -> Interval:
    """Returns the interval of the mean of the strata's means; values are resampled within each."""
    value = float(_mean_of_means(*strata))
    smallest = min(map(len, strata), default=0)
    if smallest < 2 or max(map(np.ptp, strata)) < ROUNDING:
        return Interval(value, None, None)
    low, high = bootstrap(
        strata,
        _mean_of_means,
        vectorized=True,
        confidence_level=LEVEL,
        n_resamples=RESAMPLES,
        batch=BATCH,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(value, float(low), float(high))


def _mean_of_means(*strata: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.mean([np.mean(stratum, axis=axis) for stratum in strata], axis=0)
