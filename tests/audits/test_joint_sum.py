"""Tests that the noise of a secure sum hides a record as claimed, from server and t clients.

No more may leak than is claimed, and at least 0.9 of the claim must be found. The noise is the
operating system's, and each bound holds at 0.999.
"""

import math

import numpy as np
import pytest

from audits import joint_sum, suite
from pipelines.privacy.noise import OsEntropy
from pipelines.privacy.secure_sums import noise_shares
from pipelines.privacy.secure_sums.noise_shares import SharePlan

BUDGET = suite.BUDGET
# runs that suffice for a bug
FEW = 2000


def test_server_and_colluding_clients_learn_what_is_claimed_and_no_more():
    verdict = joint_sum.audit(BUDGET, runs=25_000, noise=OsEntropy())
    assert verdict.mu_claimed == pytest.approx(BUDGET.mu)
    assert verdict.passed
    assert verdict.mu_lower >= 0.9 * verdict.mu_claimed


def test_a_share_too_small_by_the_root_of_2_is_caught(monkeypatch):
    share = SharePlan.share
    monkeypatch.setattr(SharePlan, "share", lambda *given: share(*given) / math.sqrt(2))
    assert not joint_sum.audit(BUDGET, runs=FEW, noise=OsEntropy()).passed


def test_shares_for_all_clients_of_the_sum_are_caught(monkeypatch):
    """Noise that counts the colluding clients' shares, too: too small by sqrt(5 / 3)."""
    monkeypatch.setattr(SharePlan, "least_honest", property(lambda plan: plan.threshold))
    assert not joint_sum.audit(BUDGET, runs=FEW, noise=OsEntropy()).passed


def test_one_honest_client_without_noise_is_caught(monkeypatch):
    drawn = noise_shares.noisy
    calls = []

    def silent(total: np.ndarray, *arguments, noise) -> np.ndarray:
        calls.append(1)
        # three honest clients draw noise in each world
        last = len(calls) % 3 == 0
        return total if last else drawn(total, *arguments, noise=noise)

    monkeypatch.setattr(noise_shares, "noisy", silent)
    assert not joint_sum.audit(BUDGET, runs=5_000, noise=OsEntropy()).passed


def test_half_the_noise_is_caught():
    assert not joint_sum.audit(BUDGET, runs=FEW, noise=suite.HalvedNoise()).passed
