"""Bootstrap intervals of accuracies and of their differences: scipy's, with a generator of its own seed.

Bias-corrected and accelerated (BCa, Efron 1987): near an accuracy of 1 a client's few dozen test images are skewed, and
plain percentiles then cover too rarely (five parts of 37 to 55 images at 0.94 on average: 0.93 of 300 repetitions for
percentiles, 0.96 for BCa at 0.95 asked; 0.93 and 0.94 at 400 images a part). No torch here: the report uses it.

An interval over images says how much the test images could have moved a figure of *this* run: not what another seed,
partition or draw of privacy noise would have given. `over_cells`, over many runs, is for that.

Where the data cannot say, `low` and `high` are None, with no warning: resampling what does not vary would give an
interval of no width, which reads as certainty. That is one value only: all cells equal or a single cell; every image of
every client alike; a client with a single image. A client whose images are all alike beside others that vary adds no
width: the interval is then somewhat too narrow.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import bootstrap

LEVEL = 0.95
RESAMPLES = 2000  # an end then moves by about 3 % of the half-width between bootstrap seeds
ROUNDING = (
    1e-12  # differences of equal accuracies may differ by less, and no two accuracies by so little
)
BATCH = 250  # resamples in memory at once: 12,000 test images take 24 MB


class Interval(NamedTuple):
    """value: the figure itself. low, high: the ends of its LEVEL interval, or None where the data cannot say."""

    value: float
    low: float | None
    high: float | None


def of_mean(correct: Mapping[str, np.ndarray], *, seed: int) -> Interval:
    """The mean accuracy over clients, each counting alike; images are resampled within each client's test part.

    Args:
        correct: per client bool [n]: whether each image of its test part was classified rightly.
    """
    return _of_strata([np.asarray(correct[client], float) for client in sorted(correct)], seed)


def of_difference(
    one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray], *, seed: int
) -> Interval:
    """`one`'s mean accuracy over clients less `other`'s, both on the same images: image by image, then as `of_mean`.

    Too eager where few images differ: of two equally good methods with 4 differing images expected among 200, one
    seemed better in 0.10 of 800 repetitions and not in 0.05; with 20 expected, in 0.05.

    Raises:
        ValueError: the two have not the same clients and numbers of images.
    """
    shapes = [{client: len(images) for client, images in side.items()} for side in (one, other)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"Paired methods must have the same test images. Got {shapes[0]} and {shapes[1]} instead."
        )
    pairs = [
        np.asarray(one[client], float) - np.asarray(other[client], float) for client in sorted(one)
    ]
    return _of_strata(pairs, seed)


def over_cells(differences: Mapping[tuple[int, str], float], *, seed: int) -> Interval:
    """The mean of paired differences of two methods over runs; the unit is one client in one run.

    Cells of one run share its partition, noise and shared model. They are taken as independent, so that with few seeds
    the interval is too narrow where those sway all clients of a run alike.

    Args:
        differences: {(seed, client): accuracy of one method less the other's}.
    """
    return _of_strata([np.array([differences[cell] for cell in sorted(differences)], float)], seed)


def _of_strata(strata: list[np.ndarray], seed: int) -> Interval:
    """Of the mean of the strata's means; values are resampled within each stratum."""
    value = float(_mean_of_means(*strata))
    if any(len(stratum) < 2 for stratum in strata) or all(
        np.ptp(stratum) < ROUNDING for stratum in strata
    ):
        return Interval(value, None, None)
    found = bootstrap(
        strata,
        _mean_of_means,
        vectorized=True,
        confidence_level=LEVEL,
        n_resamples=RESAMPLES,
        batch=BATCH,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(value, *(float(end) for end in found))


def _mean_of_means(*strata: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.mean([np.mean(stratum, axis=axis) for stratum in strata], axis=0)
