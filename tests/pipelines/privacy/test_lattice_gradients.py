"""Tests the exact sums of clipped gradients: against a loop, for order, bounds and hostile weights."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.privacy import lattice_gradients
from pipelines.privacy.lattice_gradients import (
    COARSEST,
    INPUT_STEPS,
    LARGEST_INPUT,
    Inputs,
    gradient_sum,
    inputs_of,
)

CLASSES = 4
WIDTH = 7


def drawn(count: int, seed: int, size: float = 1.0) -> Inputs:
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(count, WIDTH)) * size / math.sqrt(WIDTH)
    return inputs_of(inputs, rng.integers(0, CLASSES, count))


def weights(seed: int, size: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(WIDTH, CLASSES)) * size


def rows_of(inputs: Inputs, rows: np.ndarray) -> Inputs:
    return Inputs(inputs.steps[rows], inputs.norms[rows], inputs.labels[rows])


def by_loop(inputs: Inputs, matrix: np.ndarray, clipping_norm: float) -> np.ndarray:
    """Adds the records' clipped gradients over C one by one, as floats."""
    total = np.zeros_like(matrix)
    for x, label in zip(inputs.steps / INPUT_STEPS, inputs.labels):
        odds = np.exp(x @ matrix - (x @ matrix).max())
        errors = odds / odds.sum()
        errors[label] -= 1
        gradient = np.outer(x, errors)
        norm = math.sqrt((gradient**2).sum())
        total += gradient * min(1.0, clipping_norm / norm) / clipping_norm
    return total


@pytest.mark.parametrize("clipping_norm", [0.05, 0.5, 20.0])
def test_the_sum_is_that_of_a_loop(clipping_norm):
    inputs = drawn(60, seed=1)
    matrix = weights(2)
    found = gradient_sum(inputs, matrix, clipping_norm=clipping_norm, scale=2**44) / 2**44
    np.testing.assert_allclose(found, by_loop(inputs, matrix, clipping_norm), atol=60 * 2.0**-22)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 50), st.sampled_from([2**40, 2**43, 2**45]))
@settings(max_examples=60, deadline=None)
def test_the_sum_over_parts_is_the_sum_to_the_last_bit(seed, size, scale):
    """Order, company and the size of a pass change nothing: what a record adds is its own."""
    rng = np.random.default_rng(seed)
    inputs = drawn(40, seed, size)
    matrix = weights(seed, size)
    owner = rng.integers(0, 3, 40)
    order = rng.permutation(40)

    def summed(rows):
        return gradient_sum(rows_of(inputs, rows), matrix, clipping_norm=0.5, scale=scale)

    whole = summed(np.arange(40))
    np.testing.assert_array_equal(whole, summed(order))
    np.testing.assert_array_equal(whole, sum(summed(owner == part) for part in range(3)))
    np.testing.assert_array_equal(whole, sum(summed([row]) for row in range(40)))


def test_blocks_of_any_size_give_the_same_sum(monkeypatch):
    inputs = drawn(300, seed=3)
    whole = gradient_sum(inputs, weights(4), clipping_norm=0.3, scale=COARSEST)
    monkeypatch.setattr(lattice_gradients, "BLOCK", 7)
    parts = gradient_sum(inputs, weights(4), clipping_norm=0.3, scale=COARSEST)
    np.testing.assert_array_equal(whole, parts)


@given(
    st.integers(0, 2**32 - 1),
    st.floats(1e-3, 1e3),
    st.floats(1e-6, 1e6),
    st.sampled_from([0.0, 1.0, 100.0, 1e12]),
)
@settings(max_examples=100, deadline=None)
def test_no_record_adds_a_norm_above_one(seed, size, clipping_norm, steepness):
    inputs = drawn(1, seed, size)
    matrix = weights(seed, steepness)
    total = gradient_sum(inputs, matrix, clipping_norm=clipping_norm, scale=COARSEST)
    # in integers, for a float would round the norm
    assert sum(int(entry) ** 2 for entry in total.ravel()) <= COARSEST**2


def test_the_bound_is_reached():
    """Clipping takes no more than it must: a wrong record far from the boundary counts fully."""
    inputs = inputs_of(np.full((1, WIDTH), 2.0), np.array([0]))
    matrix = np.zeros((WIDTH, CLASSES))
    matrix[:, 1] = 50.0
    total = gradient_sum(inputs, matrix, clipping_norm=0.5, scale=COARSEST)
    assert math.sqrt((total.astype(float) ** 2).sum()) == pytest.approx(COARSEST, rel=1e-5)


def test_inputs_without_end_are_cut_or_dropped():
    values = np.array([[3e30, 0, 0], [np.nan, 1, 1], [np.inf, 1, 1], [1, 2, 2]])
    inputs = inputs_of(values, np.zeros(4, int))
    assert inputs.norms.tolist() == pytest.approx([LARGEST_INPUT, 0.0, 0.0, 3.0])
    assert (inputs.steps == np.trunc(inputs.steps)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300])
def test_hostile_weights_leave_finite_sums_within_the_bound(bad):
    inputs = drawn(50, seed=5)
    matrix = weights(6)
    matrix[2, 1] = bad
    total = gradient_sum(inputs, matrix, clipping_norm=0.5, scale=COARSEST)
    assert math.sqrt((total.astype(float) ** 2).sum()) <= 50 * COARSEST


def test_cancelling_weights_leave_nothing_of_other_records():
    """The attack of pitfall 21: records whose parts cancel in exact arithmetic leave exactly zero.

    Each record stands there with all labels, so that errors of equal odds add up to zero. As floats
    the same sum leaves rounding errors.
    """
    rng = np.random.default_rng(7)
    values = np.repeat(rng.normal(size=(500, WIDTH)), 2, axis=0)
    labels = np.tile([0, 1], 500)
    inputs = inputs_of(values, labels)
    total = gradient_sum(inputs, np.zeros((WIDTH, 2)), clipping_norm=0.3, scale=COARSEST)
    assert not total.any()
    shuffled = rng.permutation(1000)
    signs = np.where(labels[shuffled] == 0, -0.5, 0.5)
    assert (values[shuffled] * signs[:, None]).astype(np.float32).sum(0).any()


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e5, 1e12])
def test_weights_on_their_grid_leave_each_sum_with_inputs_exact(size):
    """Integers, and so short that no sum of products with a record's inputs needs more than 53 bits."""
    rounded, grid = lattice_gradients._on_grid(weights(8, size))
    assert (rounded == np.rint(rounded)).all() and math.log2(grid).is_integer()
    longest = np.sqrt(np.square(rounded).sum(0)).max()
    assert longest * LARGEST_INPUT * INPUT_STEPS <= 2**53


def test_no_records_give_zeros():
    total = gradient_sum(drawn(0, 0), weights(0), clipping_norm=0.5, scale=COARSEST)
    assert total.shape == (WIDTH, CLASSES) and not total.any()


def test_zero_weights_are_read_exactly():
    """Even odds: each record adds x times (1/K - y), clipped."""
    inputs = inputs_of(np.array([[0.125, 0.25]]), np.array([1]))
    total = gradient_sum(inputs, np.zeros((2, 2)), clipping_norm=1.0, scale=2**45)
    expected = np.outer([0.125, 0.25], [0.5, -0.5])
    np.testing.assert_allclose(total / 2**45, expected, atol=2.0**-24)


@pytest.mark.parametrize("copies", [2, 4, 8])
@pytest.mark.parametrize("steepness", [0.0, 1.0, 50.0])
def test_all_copies_of_a_record_together_count_as_one(copies, steepness):
    """Brute force over each record: with and without it the sums differ by a unit at most."""
    count = 6
    rng = np.random.default_rng(copies)
    # long inputs, so that each copy is clipped
    values = rng.normal(size=(copies * count, WIDTH)) * 5
    labels = np.tile(rng.integers(0, CLASSES, count), copies)
    matrix = weights(3, steepness)

    def summed(kept: np.ndarray) -> np.ndarray:
        rows = np.tile(kept, copies)
        inputs = inputs_of(values[rows], labels[rows], copies)
        return gradient_sum(inputs, matrix, clipping_norm=0.1, scale=COARSEST)

    everyone = np.ones(count, bool)
    whole = summed(everyone)
    moves = []
    for left_out in range(count):
        difference = whole - summed(np.arange(count) != left_out)
        moves.append(sum(int(entry) ** 2 for entry in difference.ravel()))
    assert max(moves) <= COARSEST**2


def test_equal_copies_are_the_record_itself():
    """The mean over copies, and no sum of them: the bound of one record is reached."""
    inputs = inputs_of(np.full((4, WIDTH), 2.0), np.zeros(4, int), 4)
    matrix = np.zeros((WIDTH, CLASSES))
    matrix[:, 1] = 50.0
    total = gradient_sum(inputs, matrix, clipping_norm=0.5, scale=COARSEST)
    assert math.sqrt((total.astype(float) ** 2).sum()) == pytest.approx(COARSEST, rel=1e-4)
    assert inputs.records == 1
