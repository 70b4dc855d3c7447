"""Tests `dp_moments` as a generator (moment_generators.md, Part I): plan, fit and sample against
oracles.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.datasets.labelled_images import Images
from pipelines.privacy import accounting
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import SeededForTests
from pipelines.synthesis import dp_moments, dp_moments_estimates, dp_moments_sums
from pipelines.synthesis.base import Space

BUDGET = Budget(5.0, 1e-5)
NOTHING = Budget(math.inf, 1e-5)


@settings(deadline=None, max_examples=40)
@given(vector=st.lists(st.floats(-10, 10), min_size=1, max_size=7))
def test_triangle_keeps_the_norm_and_comes_back(vector):
    v = np.array(vector)
    upper = dp_moments_sums.vech(len(v))
    triangle = v[upper.row] * v[upper.column] * upper.weight
    assert np.linalg.norm(triangle) == pytest.approx(v @ v, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(dp_moments_sums.symmetric(triangle), np.outer(v, v), atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), norm=st.floats(0.1, 5), size=st.floats(0, 100))
def test_clipping_bounds_the_norm_keeps_the_direction_and_leaves_short_rows(seed, norm, size):
    rows = np.random.default_rng(seed).normal(0, size, (5, 4))
    cut = dp_moments_sums.clipped(rows, norm)
    lengths = np.linalg.norm(rows, axis=1)
    assert np.all(np.linalg.norm(cut, axis=1) <= norm * (1 + 1e-12))
    np.testing.assert_array_equal(cut[lengths <= norm], rows[lengths <= norm])
    np.testing.assert_allclose(
        cut * lengths[:, None], rows * np.linalg.norm(cut, axis=1)[:, None], atol=1e-9
    )


def test_encode_and_decode_are_inverse_when_nothing_is_cut(space, records, moments_settings):
    block = moments_settings(cutoff=space.height + space.width, clip=1e6)
    pixels = records(4, space).pixels
    u = dp_moments_sums.encode(pixels, block, space)
    np.testing.assert_allclose(
        dp_moments_sums.decode(u, block.centre, block.cutoff, space), pixels, atol=1e-6
    )
    lengths = np.linalg.norm((pixels - block.centre).reshape(4, -1), axis=1)
    np.testing.assert_allclose(np.linalg.norm(u, axis=1), lengths, rtol=1e-6)  # orthonormal


def test_decode_then_encode_keeps_the_low_frequencies(space, moments_settings):
    block = moments_settings(clip=1e6, centre=0.5)
    p = space.channels * sum(1 for i in range(6) for j in range(5) if i + j < 4)
    u = np.random.default_rng(0).normal(0, 0.02, (3, p))
    np.testing.assert_allclose(
        dp_moments_sums.encode(dp_moments_sums.decode(u, 0.5, block.cutoff, space), block, space),
        u,
        atol=1e-9,
    )


def test_number_of_coefficients_and_of_released_numbers(moments_settings):
    """q (q + 1) / 2 = 105 at q = 14 on 28x28, as the spec says; K (p + 1) + K p (p + 1) / 2 numbers in all."""
    block = moments_settings(cutoff=14)
    details = dp_moments.plan(block, BUDGET, Space(28, 28, 1, 10)).statement.details
    assert details["coefficients"] == 105
    assert details["released_numbers"] == 10 * 106 + 10 * 105 * 106 // 2


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(epsilon=st.floats(0.05, 25), delta=st.floats(1e-8, 1e-3), share=st.floats(0.01, 0.99))
def test_the_two_releases_spend_exactly_the_budget(moments_settings, epsilon, delta, share):
    block = moments_settings(cutoff=3, first_share=share)
    budget = Budget(epsilon, delta)
    details = dp_moments.plan(block, budget, Space(8, 8, 1, 4)).statement.details
    first, second = details["sigma"]
    assert accounting.compose([1 / first, 1 / second]) == pytest.approx(budget.mu, rel=1e-12)
    assert (1 / first) ** 2 / budget.mu**2 == pytest.approx(share, rel=1e-9)
    planned = accounting.gdp_delta(epsilon=epsilon, mu=accounting.compose([1 / first, 1 / second]))
    scale, draws = details["lattice_steps_per_unit"], details["released_numbers"]
    slack = accounting.rounding_slack(
        epsilon=epsilon, sigma=min(first, second) * scale, draws=draws
    )
    assert planned + slack <= delta * (1 + 1e-7)


def test_small_budgets_take_their_own_settings(moments_settings, small_space):
    low = {"below": 3.0, "residual_clip": 0.7, "first_share": 0.8, "inflation": 1.8}
    block = moments_settings(low_epsilon=low)
    poor, rich = (
        dp_moments.plan(block, Budget(epsilon, 1e-5), small_space) for epsilon in (2.99, 3.0)
    )
    assert (poor.settings.residual_clip, poor.settings.first_share, poor.settings.inflation) == (
        0.7,
        0.8,
        1.8,
    )
    assert rich.settings.residual_clip == block.residual_clip
    assert (1 / poor.statement.details["sigma"][0]) ** 2 == pytest.approx(
        0.8 * Budget(2.99, 1e-5).mu ** 2
    )


def test_infinite_budget_adds_no_noise_and_claims_nothing(moments_settings, small_space):
    statement = dp_moments.plan(moments_settings(), NOTHING, small_space).statement
    assert statement.details["sigma"] == [0.0, 0.0]
    assert statement.guarantee == "none"


def test_fit_asks_for_both_noises_at_the_planned_scale(
    records, small_space, moments_settings, noise_spy
):
    plan = dp_moments.plan(moments_settings(), BUDGET, small_space)
    dp_moments.fit(records(30, small_space), plan, noise_spy, seed=0)
    details, p = plan.statement.details, plan.statement.details["coefficients"]
    scale = details["lattice_steps_per_unit"]
    shapes = [(small_space.classes, p + 1), (small_space.classes, p * (p + 1) // 2)]
    assert noise_spy.calls == [
        (shape, sigma * scale) for shape, sigma in zip(shapes, details["sigma"])
    ]


def test_counts_are_judged_by_their_own_noise(
    records, small_space, moments_settings, noise_spy, monkeypatch
):
    """A count is the released number over w1, hence its deviation is sigma over w1."""
    judged = []
    keep = dp_moments_estimates.keep_classes
    monkeypatch.setattr(
        dp_moments, "keep_classes", lambda *given: judged.append(given) or keep(*given)
    )
    plan = dp_moments.plan(moments_settings(count_weight=0.5), BUDGET, small_space)
    data = records(30, small_space)
    dp_moments.fit(data, plan, noise_spy, seed=0)
    counts, deviation = judged[0]
    np.testing.assert_allclose(counts, np.bincount(data.labels, minlength=3), rtol=1e-5)
    assert deviation == pytest.approx(plan.statement.details["sigma"][0] * math.sqrt(1.25) / 0.5)


def test_without_noise_the_true_moments_come_back(records, small_space, moments_settings):
    block = moments_settings(clip=1e3, residual_clip=1e2, cutoff=3)
    data = records(900, small_space)
    state = dp_moments.fit(
        data, dp_moments.plan(block, NOTHING, small_space), SeededForTests(0), seed=0
    )
    u = dp_moments_sums.encode(data.pixels, block, small_space)
    for label in range(small_space.classes):
        own = u[data.labels == label]
        np.testing.assert_allclose(state["means"][label], own.mean(0), atol=0.01)
        covariance = state["roots"][label] @ state["roots"][label].T
        np.testing.assert_allclose(covariance, np.cov(own.T, bias=True), atol=0.01)
        assert np.diag(covariance).min() > 0.01
    np.testing.assert_allclose(state["histogram"], np.bincount(data.labels) / len(data), atol=1e-4)


def test_samples_have_the_state_s_moments_and_labels(small_space, moments_settings):
    rng = np.random.default_rng(0)
    p = dp_moments_sums.encode(
        np.zeros((1, *small_space.shape)), moments_settings(cutoff=2), small_space
    ).shape[1]
    state = {
        "means": rng.normal(0, 0.1, (3, p)),
        "roots": rng.normal(0, 0.05, (3, p, p)),
        "histogram": np.array([0.7, 0.0, 0.3]),
        "shape": np.array(small_space.shape),
        "centre": np.array(0.5),
        "cutoff": np.array(2),
        "contrast": np.array(1.0),
    }
    data = dp_moments.sample(state, 30_000, seed=1)
    assert np.bincount(data.labels, minlength=3) / len(data) == pytest.approx(
        [0.7, 0, 0.3], abs=0.02
    )
    assert np.all(data.ids == -1)
    u = dp_moments_sums.encode(
        data.pixels, moments_settings(cutoff=2, centre=0.5, clip=1e6), small_space
    )
    own = u[data.labels == 0]
    np.testing.assert_allclose(own.mean(0), state["means"][0], atol=0.01)
    np.testing.assert_allclose(np.cov(own.T), state["roots"][0] @ state["roots"][0].T, atol=0.002)


def test_contrast_moves_grey_levels_away_from_the_middle_and_leaves_the_release_alone(
    records, small_space, moments_settings
):
    data, states = records(60, small_space), []
    for contrast in (1.0, 1.5):
        plan = dp_moments.plan(moments_settings(contrast=contrast), BUDGET, small_space)
        states.append(dp_moments.fit(data, plan, SeededForTests(0), seed=0))
    for name in ("means", "roots", "histogram"):
        np.testing.assert_array_equal(states[0][name], states[1][name])
    plain, strong = (dp_moments.sample(state, 200, seed=1).pixels for state in states)
    np.testing.assert_allclose(strong, np.clip(0.5 + 1.5 * (plain - 0.5), 0, 1), atol=2 / 255)
    assert np.abs(strong - plain).max() > 0.05


def mirrored(data):
    """Returns the records' left-right mirror images under the same labels."""
    return replace(data, images=np.ascontiguousarray(data.images[:, :, ::-1]))


def test_a_mirror_changes_the_sign_of_the_second_part_alone(records, space, moments_settings):
    block = moments_settings(mirror=True)
    data = records(20, space)
    u, v = (dp_moments_sums.encode(each.pixels, block, space) for each in (data, mirrored(data)))
    even, odd = dp_moments_sums.parts_of(block, space)
    assert sorted([*even, *odd]) == list(range(u.shape[1]))
    np.testing.assert_allclose(v[:, even], u[:, even], atol=1e-12)
    np.testing.assert_allclose(v[:, odd], -u[:, odd], atol=1e-12)
    assert np.abs(u[:, odd]).max() > 0.01
    (all_of_them,) = dp_moments_sums.parts_of(moments_settings(), space)
    assert list(all_of_them) == list(range(u.shape[1]))


def test_a_plan_and_its_statement_name_mirror_only_where_it_is_asked_for(
    small_space, moments_settings
):
    """What was released and measured before this setting existed stays the same release."""
    named = []
    for mirror in (False, True):
        details = dp_moments.plan(
            moments_settings(mirror=mirror), BUDGET, small_space
        ).statement.details
        named.append(details["settings"].get("mirror"))
    assert named == [None, True]


def test_without_noise_mirror_is_the_fit_to_records_and_their_mirror_images(
    records, space, moments_settings
):
    data = records(60, space)
    other = mirrored(data)
    pairs = ((getattr(data, name), getattr(other, name)) for name in ("images", "labels", "ids"))
    both = Images(*map(np.concatenate, pairs))

    def fitted(shard, **changes):
        plan = dp_moments.plan(moments_settings(**changes), NOTHING, space)
        return dp_moments.fit(shard, plan, SeededForTests(0), seed=0)

    state, oracle, plain = fitted(data, mirror=True), fitted(both), fitted(data)
    np.testing.assert_allclose(state["means"], oracle["means"], atol=1e-6)
    covariances, expected, without = (
        each["roots"] @ each["roots"].transpose(0, 2, 1) for each in (state, oracle, plain)
    )
    np.testing.assert_allclose(covariances, expected, atol=1e-5)
    assert np.abs(without - expected).max() > 0.01  # a control: the records are not mirrored


def bytes_of(state: dict) -> bytes:
    return b"".join(np.ascontiguousarray(state[name]).tobytes() for name in sorted(state))


def test_same_seed_same_bytes_with_test_noise_and_other_noise_differs(
    records, space, moments_settings
):
    plan = dp_moments.plan(moments_settings(), BUDGET, space)
    data = records(40, space)
    first, again, other = (
        dp_moments.fit(data, plan, SeededForTests(seed), seed=0) for seed in (1, 1, 2)
    )
    assert bytes_of(first) == bytes_of(again) != bytes_of(other)
    images = [dp_moments.sample(first, 20, seed=seed).images.tobytes() for seed in (3, 3, 4)]
    assert images[0] == images[1] != images[2]


def test_a_missing_class_is_no_special_case(records, small_space, moments_settings):
    data = records(60, small_space, labels=np.arange(60) % 2)
    state = dp_moments.fit(
        data, dp_moments.plan(moments_settings(), NOTHING, small_space), SeededForTests(0), seed=0
    )
    assert state["histogram"][2] == 0
    assert all(np.isfinite(array).all() for array in state.values())
    assert set(dp_moments.sample(state, 50, seed=0).labels) <= {0, 1}


def test_an_empty_shard_still_makes_both_releases(records, small_space, moments_settings):
    plan = dp_moments.plan(moments_settings(), BUDGET, small_space)
    state = dp_moments.fit(records(1, small_space)[:0], plan, SeededForTests(0), seed=0)
    assert all(np.isfinite(array).all() for array in state.values())
