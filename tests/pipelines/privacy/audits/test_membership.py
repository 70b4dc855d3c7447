"""Tests nearest-neighbour membership inference: its figures against oracles, its limit against
Gaussians.
"""

import numpy as np
import pytest

from pipelines.privacy import accounting
from pipelines.privacy.audits import membership


@pytest.fixture
def records():
    rng = np.random.default_rng(0)
    return rng.random((600, 4, 4, 1)), rng.random(600) < 0.5


def test_distance_to_the_nearest_synthetic_image():
    records, synthetic = (
        np.zeros((2, 2, 2, 1)),
        np.stack([np.full((2, 2, 1), 3.0), np.full((2, 2, 1), 0.5)]),
    )
    records[1] = 3.0
    np.testing.assert_allclose(membership.nearest(records, synthetic), [1.0, 0.0])


def test_figures_of_the_attack():
    """There are four members and ten others.

    One of the others is nearer than two of the members.
    """
    distances = np.array([0.0, 0.1, 0.5, 0.6, *[0.3], *np.linspace(1, 2, 9)])
    members = np.arange(14) < 4
    facts = membership.attack(distances, members)
    assert facts["auc"] == pytest.approx(38 / 40)
    assert facts["tpr_at_fpr_0.01"] == 0.5
    assert facts["tpr_at_fpr_0.1"] == 1.0


def test_copied_records_are_caught_whatever_is_claimed(records):
    images, members = records
    distances = membership.nearest(images, images[members])
    for epsilon in (0.1, 1.0, 10.0):
        mu = accounting.gdp_mu(epsilon=epsilon, delta=1e-5)
        verdict = membership.audit(distances, members, guesses=120, mu_claimed=mu, delta=1e-5)
        assert not verdict.passed and verdict.evidence["auc"] == 1.0


def test_images_that_know_nothing_pass_at_a_small_claim(records):
    images, members = records
    distances = membership.nearest(images, np.random.default_rng(1).random((300, 4, 4, 1)))
    verdict = membership.audit(distances, members, guesses=120, mu_claimed=0.1, delta=1e-5)
    assert verdict.passed and abs(verdict.evidence["auc"] - 0.5) < 0.1


@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_the_largest_auc_is_that_of_two_gaussians(mu):
    rng = np.random.default_rng(2)
    members = np.arange(20_000) < 10_000
    auc = membership.attack(-(mu * members + rng.normal(size=20_000)), members)["auc"]
    assert auc == pytest.approx(membership.largest_auc(mu), abs=0.01)


@pytest.mark.parametrize("mu", [0.0, 2.0])
def test_an_estimated_auc_scatters_as_hanley_and_mcneil_say(mu):
    rng = np.random.default_rng(3)
    members = np.arange(100) < 40
    found = [
        membership.attack(rng.normal(size=100) - mu * members, members)["auc"] for _ in range(400)
    ]
    expected = membership.auc_deviation(membership.largest_auc(mu), members=40, others=60)
    assert np.std(found) == pytest.approx(expected, rel=0.15)
