"""Tests that a joint release is that of all records together, with the planned noise."""

import math

import numpy as np
import pytest

from benchmarks import joint_release
from benchmarks.recipe_step import pictures
from pipelines import config
from pipelines.datasets.labelled_images import concatenate
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import SeededForTests
from pipelines.synthesis import dp_moments, release
from pipelines.synthesis.base import Plan

PARAMS = config.load()


def planned(budget: Budget) -> Plan:
    settings = PARAMS.generator("digits", "dp_moments")
    space = release.public_space(PARAMS.profiles["digits"])
    return dp_moments.plan(settings, budget, space)


def test_without_noise_it_is_the_fit_of_all_records():
    budget = Budget(math.inf, 1e-5)
    plan = planned(budget)
    parts = [pictures(PARAMS, "digits", count) for count in (20, 30, 40, 50, 60)]
    shares = joint_release.shared_noise(plan, budget, colluding=0)
    noise = SeededForTests(0)
    joint = joint_release.joint_state(parts, plan, shares, noise)
    whole = dp_moments.fit(concatenate(parts), plan, noise, seed=0)
    assert joint.keys() == whole.keys()
    for name, value in whole.items():
        # each record is cut to the lattice of 2^-20
        np.testing.assert_allclose(joint[name], value, atol=1e-4)


@pytest.mark.parametrize("colluding", [0, 2])
def test_the_noise_of_the_sums_is_that_of_all_shares(colluding):
    budget = Budget(3.0, 1e-5)
    plan = planned(budget)
    shares = joint_release.shared_noise(plan, budget, colluding)
    assert shares.mu == pytest.approx(budget.mu)
    larger = math.sqrt(5 / (5 - colluding))
    expected = [larger * sigma for sigma in plan.statement.details["sigma"]]
    assert joint_release.sigmas_of_sums(shares) == pytest.approx(expected)


def test_parts_are_equal_and_disjoint():
    images = pictures(PARAMS, "digits", 53)
    parts = joint_release.dealt(images, 5, np.random.default_rng(0))
    assert [len(part) for part in parts] == [10] * 5
    records = [part.ids for part in parts]
    assert len(set(np.concatenate(records).tolist())) == 50
