import itertools
import warnings

import numpy as np
import pytest
from scipy.stats import norm

from pipelines.evaluation import intervals


def binary(wrong: int, count: int) -> np.ndarray:
    return np.arange(count) >= wrong


def cells(values) -> dict:
    return {(number, "a"): value for number, value in enumerate(values)}


def test_the_ends_are_those_of_all_resamples_there_are(monkeypatch):
    """The oracle is BCa by its definition, over all 7^7 resamples of seven skewed values."""
    values = np.array([0.0, 0.1, 0.15, 0.2, 0.4, 0.9, 2.0])
    means = np.sort([sum(pick) / 7 for pick in itertools.product(values, repeat=7)])
    z0 = norm.ppf((np.mean(means < values.mean()) + np.mean(means <= values.mean())) / 2)
    left_out = np.array([np.delete(values, i).mean() for i in range(7)])
    pull = left_out.mean() - left_out
    acceleration = np.sum(pull**3) / (6 * np.sum(pull**2) ** 1.5)
    z = z0 + norm.ppf([0.025, 0.975])
    expected = np.quantile(means, norm.cdf(z0 + z / (1 - acceleration * z)))
    monkeypatch.setattr(intervals, "RESAMPLES", 50_000)
    found = intervals.over_cells(cells(values), seed=0)
    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=0.015)
    percentiles = np.quantile(means, [0.025, 0.975])
    assert (
        abs(found.high - percentiles[1]) > 0.05
    )  # the control: plain percentiles would be told apart


def test_clients_count_alike_and_images_are_resampled_within_each():
    correct = {"a": binary(100, 1000), "b": binary(100, 200)}  # 0.9 and 0.5
    found = intervals.of_mean(correct, seed=0)
    assert found.value == pytest.approx(0.7)
    deviation = np.sqrt(0.9 * 0.1 / 1000 + 0.5 * 0.5 / 200) / 2
    pooled = np.sqrt(
        (1000 / 1200) * (200 / 1200) / 1200
    )  # all images in one pot: another figure and another width
    half = (found.high - found.low) / 2
    assert half == pytest.approx(1.96 * deviation, rel=0.08)
    assert half != pytest.approx(1.96 * pooled, rel=0.08)


def coverage(shrunk: float = 1.0, repetitions: int = 300) -> float:
    """Returns how often the interval of 30 normal cells, its width times `shrunk`, holds the true
    mean.
    """
    rng, hits = np.random.default_rng(3), 0
    for repetition in range(repetitions):
        value, low, high = intervals.over_cells(cells(rng.normal(0.02, 0.05, 30)), seed=repetition)
        hits += value + shrunk * (low - value) <= 0.02 <= value + shrunk * (high - value)
    return hits / repetitions


def test_it_covers_the_known_mean_and_a_wrong_scale_does_not(monkeypatch):
    monkeypatch.setattr(intervals, "RESAMPLES", 500)
    assert 0.91 < coverage() < 0.98
    assert coverage(shrunk=2 / 3) < 0.88
    assert coverage(shrunk=3 / 2) > 0.98


def test_the_difference_is_paired_image_by_image():
    """Both fail on the same hard images, and one on ten more: paired, that is seen; on shuffled images it is not."""
    one, other = (
        {"a": binary(100, 400), "b": binary(80, 300)},
        {"a": binary(110, 400), "b": binary(90, 300)},
    )
    found = intervals.of_difference(one, other, seed=0)
    assert found.value == pytest.approx((10 / 400 + 10 / 300) / 2)
    assert found.low > 0
    shuffled = {
        client: np.random.default_rng(1).permutation(images) for client, images in other.items()
    }
    unpaired = intervals.of_difference(one, shuffled, seed=0)
    assert unpaired.value == pytest.approx(found.value)
    assert unpaired.low < 0 < unpaired.high


def test_pairs_need_the_same_images():
    with pytest.raises(ValueError, match="same test images"):
        intervals.of_difference({"a": binary(1, 5)}, {"a": binary(1, 6)}, seed=0)
    with pytest.raises(ValueError, match="same test images"):
        intervals.of_difference({"a": binary(1, 5)}, {"b": binary(1, 5)}, seed=0)


def test_the_seed_decides_and_the_order_of_clients_does_not():
    correct = {"a": binary(3, 40), "b": binary(9, 50)}
    first = intervals.of_mean(correct, seed=1)
    assert intervals.of_mean(dict(reversed(correct.items())), seed=1) == first
    assert intervals.of_mean(correct, seed=1) == first
    many = cells(np.random.default_rng(0).normal(size=20))
    assert intervals.over_cells(many, seed=1) != intervals.over_cells(many, seed=2)


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (lambda: intervals.of_mean({"a": binary(0, 30), "b": binary(0, 9)}, seed=0), 1.0),
        (lambda: intervals.of_mean({"a": binary(3, 30), "b": binary(0, 1)}, seed=0), 0.95),
        (lambda: intervals.of_difference({"a": binary(2, 30)}, {"a": binary(2, 30)}, seed=0), 0.0),
        (lambda: intervals.over_cells({(1, "a"): 0.25}, seed=0), 0.25),
        (lambda: intervals.over_cells(cells([0.25] * 15), seed=0), 0.25),
        (
            lambda: intervals.over_cells(cells([0.3 - 0.1, 0.2, 0.5 - 0.3]), seed=0),
            0.2,
        ),  # equal but for rounding
    ],
)
def test_where_the_data_cannot_say_there_are_no_ends_and_no_warning(found, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found() == (pytest.approx(value), None, None)


@pytest.mark.parametrize("wrong", [(1, 0), (1, 1), (29, 0)])
def test_a_single_image_apart_gives_finite_ends_and_no_warning(wrong):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, low, high = intervals.of_mean(
            {"a": binary(wrong[0], 30), "b": binary(wrong[1], 30)}, seed=0
        )
    assert 0 <= low <= value <= high <= 1
    assert low < high
