"""Sums the clipped gradients of a linear classifier exactly: as integers, whose order is free.

Quantity: over all records, the sum of the gradient of softmax cross-entropy with respect to the
weights [d, K], in units of the clipping norm C. A record's gradient is the outer product of its
inputs x and its errors p - y, scaled to an L2 norm of at most C. Of a record with several copies it
is the mean of theirs, each scaled so. Sensitivity: 1, when one record is added or removed with its
copies. Noise and accounting are the caller's (`discrete_gaussian`).

Inputs are cut to a lattice once, and errors in each step, both towards zero. Products of the two
are integers, and each partial sum fits into the 53 bits of a float64. So a matrix product adds them
without any rounding, in whatever order. The probabilities p follow from exact sums, too. So what a
record adds is a function of that record and of the weights alone, to the last bit. An attacker who
sends weights under which other records cancel finds no rounding error to read (docs/privacy.md,
pitfall 21).

>>> inputs = inputs_of(np.ones((3, 2)), np.array([0, 1, 0]))
>>> total = gradient_sum(inputs, np.zeros((2, 2)), clipping_norm=0.5, scale=2**40)
>>> (total / 2**40).round(3).tolist()
[[-0.5, 0.5], [-0.5, 0.5]]
"""

from typing import NamedTuple

import numpy as np

# lattice steps per unit of an input
INPUT_STEPS = 2**20
# the largest L2 norm of a record's inputs, a power of two: larger ones are scaled to it
LARGEST_INPUT = 8.0
# the largest weight: a server's larger ones count as this
LARGEST_WEIGHT = 1e9
# bits of a float64, within which integers are exact
BITS = 53
# of the errors, before they are cut: rounding lifts no record above the clipping norm
SHRINK = 1 - 2.0**-40
# lattice steps per unit of the sum, at least: below, errors would be cut too coarsely to learn from
COARSEST = 2**40
# records whose gradients are summed at once, at most
BLOCK = 4096


class Inputs(NamedTuple):
    """Holds the records of one client on the lattice, each in as many rows as it has copies.

    Attributes:
        steps: Inputs in lattice steps, float64 [n, d], all of them integers.
        norms: The L2 norm of each row's inputs, float64 [n].
        labels: int64 [n].
        copies: How many rows each record has, a power of two.
    """

    steps: np.ndarray
    norms: np.ndarray
    labels: np.ndarray
    copies: int = 1

    @property
    def records(self) -> int:
        """Returns the number of records, which is private."""
        return len(self.labels) // self.copies


def inputs_of(inputs: np.ndarray, labels: np.ndarray, copies: int = 1) -> Inputs:
    """Returns records on the lattice.

    Args:
        inputs: float [n, d], each row a function of one record alone. Rows that are not finite
            become 0.
        labels: int64 [n], from 0 on.
        copies: How many of the rows are of the same record, a power of two.
    """
    values = np.where(np.isfinite(inputs).all(1, keepdims=True), inputs, 0.0).astype(np.float64)
    lengths = np.sqrt(np.square(values).sum(1, keepdims=True))
    values *= np.minimum(1.0, LARGEST_INPUT / np.maximum(lengths, LARGEST_INPUT))
    steps = np.trunc(values * INPUT_STEPS)
    norms = np.sqrt(np.square(steps).sum(1)) / INPUT_STEPS
    return Inputs(steps, norms, labels, copies)


def gradient_sum(
    inputs: Inputs, weights: np.ndarray, *, clipping_norm: float, scale: int
) -> np.ndarray:
    """Returns the sum over records of their clipped gradients, int64 [d, K] in lattice steps.

    Args:
        inputs: The records, from `inputs_of`.
        weights: The weights [d, K], public. Whatever a server sends, no record's part outgrows 1.
        clipping_norm: C, the largest norm of a record's gradient over all weights together.
        scale: Lattice steps per unit of the sum, a power of two in [COARSEST, 2^BITS].
    """
    rounded, grid = _on_grid(weights)
    total = np.zeros(weights.shape, np.int64)
    rows = min(BLOCK, 2**BITS // scale)
    for start in range(0, len(inputs.labels), rows):
        block = slice(start, start + rows)
        part = Inputs(inputs.steps[block], inputs.norms[block], inputs.labels[block])
        # exact, by the length of the weights' columns
        logits = (part.steps @ rounded) / (INPUT_STEPS * grid)
        # all copies of a record together have the norm of one
        steps = _error_steps(logits, part, clipping_norm, scale // inputs.copies)
        total += (part.steps.T @ steps).astype(np.int64)
    return total


def _on_grid(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Returns weights as integers, float64 [d, K], and how many of them are a unit: a power of two.

    The columns are so short that each sum with a record's inputs is exact. Weights that are no
    number become 0.
    """
    finite = np.nan_to_num(np.asarray(weights, np.float64), posinf=0.0, neginf=0.0)
    finite = finite.clip(-LARGEST_WEIGHT, LARGEST_WEIGHT)
    longest = max(np.sqrt(np.square(finite).sum(0)).max(), 1.0)
    # a bit is left for the rounding of the weights
    room = BITS - 1 - np.log2(INPUT_STEPS * LARGEST_INPUT)
    grid = 2.0 ** np.floor(room - np.log2(longest) - 1)
    return np.rint(finite * grid), grid


def _error_steps(
    logits: np.ndarray, records: Inputs, clipping_norm: float, scale: int
) -> np.ndarray:
    """Returns the errors p - y over C, clipped and in lattice steps, float64 [n, K], integers.

    A record's product of inputs and errors has a norm of at most `scale`. The norm of a gradient is
    |p - y| |x|.

    Args:
        logits: [n, K].
        records: The records.
        clipping_norm: C.
        scale: Lattice steps per unit of the sum.
    """
    odds = np.exp(logits - logits.max(1, keepdims=True))
    errors = odds / odds.sum(1, keepdims=True)
    errors[np.arange(len(errors)), records.labels] -= 1
    lengths = np.sqrt(np.square(errors).sum(1)) * records.norms
    shares = SHRINK / np.maximum(lengths, clipping_norm)
    return np.trunc(errors * shares[:, None] * (scale / INPUT_STEPS))
