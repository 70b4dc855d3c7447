"""Tests the steps of a linear head against the recurrence written out, and the choice of schedules."""

import numpy as np
import pytest

from models import fixed_features
from pipelines.config.dp import DpsgdHead
from pipelines.config.heads import HeadWarps
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.lattice_gradients import INPUT_STEPS
from pipelines.training import linear_head

SCHEDULES = [
    {"from_signal": 0.0, "steps": 5, "learning_rate": 1.0},
    {"from_signal": 10.0, "steps": 7, "learning_rate": 2.0},
]


def settings(schedules: list[dict]) -> DpsgdHead:
    return DpsgdHead(rounds=8, clipping_norm=0.5, count_share=0.01, schedules=schedules)


def test_three_steps_are_those_written_out():
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(3, 4, 2))
    descent = linear_head.start(4, 2)
    for gradient in gradients:
        descent = linear_head.after(
            descent, gradient, learning_rate=0.5, momentum=0.8, averaging=0.6
        )
    first = -0.5 * gradients[0]
    second = first - 0.5 * (0.8 * gradients[0] + gradients[1])
    third = second - 0.5 * (0.64 * gradients[0] + 0.8 * gradients[1] + gradients[2])
    np.testing.assert_allclose(descent.weights, third)
    average = 0.4 * (0.36 * first + 0.6 * second + third)
    np.testing.assert_allclose(descent.average, average)


@pytest.mark.parametrize(("signal", "steps"), [(0.0, 5), (9.99, 5), (10.0, 7), (np.inf, 7)])
def test_the_last_schedule_that_fits_counts(signal, steps):
    assert linear_head.schedule_of(settings(SCHEDULES), signal).steps == steps


@pytest.mark.parametrize("schedules", [[], SCHEDULES[1:], SCHEDULES[::-1], SCHEDULES[:1] * 2])
def test_schedules_begin_at_zero_and_rise(schedules):
    with pytest.raises(ValueError, match="rising by from_signal, the first from 0"):
        settings(schedules)


def test_lattice_inputs_end_with_the_bias_and_are_kept_privately(monkeypatch, tmp_path):
    monkeypatch.setattr(linear_head, "FEATURES", tmp_path / "features")
    pixels = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 1)).astype(np.uint8)
    data = Images(pixels, np.arange(5) % 3, np.arange(5))
    inputs = linear_head.lattice_inputs(data)
    assert (inputs.steps[:, -1] == np.trunc(fixed_features.BIAS * INPUT_STEPS)).all()
    (stored,) = linear_head.FEATURES.iterdir()
    assert stored.stat().st_mode & 0o077 == 0
    assert linear_head.FEATURES.stat().st_mode & 0o077 == 0
    again = linear_head.lattice_inputs(data)
    np.testing.assert_array_equal(inputs.steps, again.steps)


def test_each_record_has_its_copies_and_its_label(monkeypatch, tmp_path):
    monkeypatch.setattr(linear_head, "FEATURES", tmp_path / "features")
    pixels = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 1)).astype(np.uint8)
    data = Images(pixels, np.arange(5) % 3, np.arange(5))
    alone = linear_head.lattice_inputs(data)
    inputs = linear_head.lattice_inputs(data, warps=HeadWarps(copies=4, shift=2.0))
    assert (inputs.copies, inputs.records, len(inputs.labels)) == (4, 5, 20)
    assert inputs.labels.tolist() == 4 * data.labels.tolist()
    np.testing.assert_array_equal(inputs.steps[:5], alone.steps)
    # no copy is another
    assert len(np.unique(inputs.steps, axis=0)) == 20


@pytest.mark.parametrize("left_out", range(3))
def test_a_record_that_goes_takes_its_copies_and_moves_no_other(monkeypatch, tmp_path, left_out):
    monkeypatch.setattr(linear_head, "FEATURES", tmp_path / "features")
    pixels = np.random.default_rng(1).integers(0, 256, (3, 8, 8, 1)).astype(np.uint8)
    data = Images(pixels, np.arange(3), np.array([11, 5, 2**40]))
    warps = HeadWarps(copies=2, rotation=0.2, scale=0.1, shear=0.1, shift=2.0, elastic=1.0)
    kept = np.arange(3) != left_out
    whole = linear_head.lattice_inputs(data, warps=warps)
    # positions as ids: those behind it are renamed
    moved = Images(data.images[kept], data.labels[kept], np.arange(2))
    rest = linear_head.lattice_inputs(moved, warps=warps)
    np.testing.assert_array_equal(rest.steps, whole.steps[np.tile(kept, 2)])
