"""Prepares records for a linear head, takes its noisy steps, and decides how many there are.

`inputs` and `lattice_inputs` read private records, and `released_count` releases their number. All
else is post-processing: it sees noisy sums of gradients, a noisy number of records, and budgets. The
head is the average of the iterates.

>>> descent = start(inputs=3, classes=2)
>>> descent = after(descent, np.ones((3, 2)), learning_rate=0.5, momentum=0.0, averaging=0.0)
>>> descent.average[0].tolist()
[-0.5, -0.5]
"""

from typing import NamedTuple

import numpy as np

from models.fixed_features import BIAS
from pipelines.config.heads import Head, HeadSchedule, HeadWarps
from pipelines.datasets.labelled_images import Images
from pipelines.paths import SCRATCH
from pipelines.privacy.discrete_gaussian import count_on_lattice, release
from pipelines.privacy.lattice_gradients import Inputs, inputs_of
from pipelines.privacy.noise import Noise
from pipelines.training import fixed_features, record_warps
from pipelines.training.fixed_features import Fixed

# of private records, and as private
FEATURES = SCRATCH / "features"
# fewer records than this are no divisor
LEAST_COUNT = 10.0


def lattice_inputs(
    data: Images, fixed: Fixed | None = None, warps: HeadWarps | None = None
) -> Inputs:
    """Returns the inputs of a linear head on the lattice: fixed features, and the bias' constant.

    Args:
        data: The private records.
        fixed: Which features they have; None: scattering.
        warps: How many copies each record has, and how they are warped; None: itself alone.
    """
    if warps is None:
        return inputs_of(inputs(data, fixed), data.labels)
    rows = [inputs(data, fixed)]
    for number in range(1, warps.copies):
        rows.append(inputs(record_warps.warped(data, warps, number), fixed))
    labels = np.tile(data.labels, warps.copies)
    return inputs_of(np.concatenate(rows), labels, warps.copies)


def inputs(data: Images, fixed: Fixed | None = None) -> np.ndarray:
    """Returns the inputs of a linear head, float32 [n, d], from features that are kept in FEATURES."""
    features = fixed_features.features(data, fixed, FEATURES)
    return np.pad(features, ((0, 0), (0, 1)), constant_values=BIAS)


def released_count(records: int, *, sigma: float, scale: int, noise: Noise) -> float:
    """Releases a number of records with noise, LEAST_COUNT at least.

    Sensitivity 1, when one record is added or removed. Accounting is the caller's.

    Args:
        records: The number.
        sigma: The standard deviation of the noise.
        scale: Lattice steps per unit.
        noise: The noise source.
    """
    total = count_on_lattice(records, scale)
    return max(release(total, sigma=sigma, scale=scale, noise=noise).item(), LEAST_COUNT)


class Descent(NamedTuple):
    """Holds a head in mid-course, float64 [d, K] each.

    Attributes:
        weights: The iterate, at which the next gradients are computed.
        velocity: The momentum.
        average: The average of the iterates, which is what is handed out.
    """

    weights: np.ndarray
    velocity: np.ndarray
    average: np.ndarray


def start(inputs: int, classes: int) -> Descent:
    """Returns a head of zeros: the loss is convex, so that no seed is needed."""
    zeros = np.zeros((inputs, classes))
    return Descent(zeros, zeros, zeros)


def after(
    descent: Descent,
    gradient: np.ndarray,
    *,
    learning_rate: float,
    momentum: float,
    averaging: float,
) -> Descent:
    """Returns the head after one step.

    Args:
        descent: The head before it.
        gradient: The noisy mean gradient [d, K], in units of the clipping norm.
        learning_rate: The rate of the step.
        momentum: The weight of the past in the velocity.
        averaging: The weight of the past in the average.
    """
    velocity = momentum * descent.velocity + gradient
    weights = descent.weights - learning_rate * velocity
    average = averaging * descent.average + (1 - averaging) * weights
    return Descent(weights, velocity, average)


def schedule_of(settings: Head, signal: float) -> HeadSchedule:
    """Returns the last schedule that begins at or below a signal.

    Args:
        settings: The settings of the head.
        signal: mu times the number of records, where mu is that of all steps together. Where K
            clients add noise of their own, it is over the root of K.
    """
    fitting = [schedule for schedule in settings.schedules if schedule.from_signal <= signal]
    return fitting[-1] if fitting else settings.schedules[0]
