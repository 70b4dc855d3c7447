"""Tests the gain against local accuracy. A correlation by construction alone does not count."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from experiments.summaries import gain_against_local


def test_unrelated_accuracies_correlate_negatively_and_the_permutation_says_so():
    rng = np.random.default_rng(1)
    local, ours = rng.uniform(0.5, 0.9, 30), rng.uniform(0.5, 0.9, 30)
    found = gain_against_local(local, ours)
    assert (
        found["spearman"] < -0.4 and found["p"] < 0.05
    )  # the usual p sees an effect where there is none
    assert found["spearman_permuted"] == pytest.approx(
        -0.7, abs=0.06
    )  # -1 / sqrt(2) for equal variances
    assert found["p_permuted"] > 0.05


def test_a_real_effect_is_beyond_what_construction_gives():
    rng = np.random.default_rng(2)
    local = rng.uniform(0.5, 0.9, 30)
    ours = (
        1.4 - local + rng.normal(0, 0.02, 30)
    )  # who is worse alone ends better: more than catching up
    found = gain_against_local(local, ours)
    assert found["spearman"] < found["spearman_permuted"] - 0.1 and found["p_permuted"] < 0.001


def test_the_permutations_are_scipys_own_correlation():
    local, ours = [0.8, 0.6, 0.7, 0.5], [0.9, 0.8, 0.8, 0.9]
    found = gain_against_local(local, ours)
    from itertools import permutations

    every = [spearmanr(local, np.subtract(other, local)).statistic for other in permutations(ours)]
    assert found["spearman_permuted"] == pytest.approx(np.mean(every), abs=0.02)
    share = np.mean(np.array(every) <= found["spearman"] + 1e-12)
    assert found["p_permuted"] == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize(
    ("local", "ours"), [([0.5, 0.6], [0.6, 0.6]), ([0.5] * 4, [0.6, 0.7, 0.8, 0.9])]
)
def test_too_few_cells_or_no_variation_is_no_figure(local, ours):
    found = gain_against_local(local, ours)
    assert found["n"] == len(local) and found["spearman"] is None and found["p_permuted"] is None
