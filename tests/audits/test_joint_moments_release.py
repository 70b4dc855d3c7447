"""Tests that a whole joint release hides a record as claimed, from server and t clients.

The noise is the operating system's, and each bound holds at 0.999.
"""

import math

import pytest

from audits import joint_moments_release, suite
from pipelines.privacy.noise import OsEntropy
from pipelines.privacy.secure_sums.noise_shares import SharePlan
from pipelines.synthesis import dp_moments

BUDGET = suite.BUDGET
# runs that suffice for a bug
FEW = 2000


def test_both_sums_together_show_no_more_than_is_claimed():
    verdict = joint_moments_release.audit(BUDGET, runs=4000, noise=OsEntropy())
    assert verdict.mu_claimed == pytest.approx(BUDGET.mu)
    assert verdict.passed
    assert verdict.mu_lower >= 0.7 * verdict.mu_claimed


@pytest.mark.slow
def test_both_sums_together_show_what_is_claimed():
    """A bound from few runs is loose."""
    verdict = joint_moments_release.audit(BUDGET, runs=50_000, noise=OsEntropy())
    assert verdict.passed
    assert verdict.mu_lower >= 0.9 * verdict.mu_claimed


def test_a_share_too_small_by_the_root_of_2_is_caught(monkeypatch):
    share = SharePlan.share
    monkeypatch.setattr(SharePlan, "share", lambda *given: share(*given) / math.sqrt(2))
    assert not joint_moments_release.audit(BUDGET, runs=FEW, noise=OsEntropy()).passed


def test_a_part_that_weighs_more_than_its_unit_is_caught(monkeypatch):
    sound = dp_moments.next_sum

    def heavier(*given):
        return 2 * sound(*given)

    monkeypatch.setattr(dp_moments, "next_sum", heavier)
    assert not joint_moments_release.audit(BUDGET, runs=FEW, noise=OsEntropy()).passed
