import math

import pytest
from scipy.stats import norm

from pipelines.privacy.accounting import gdp_mu
from pipelines.reporting import budgets

DELTA, LATTICE = 1e-5, 1e-3


def release(epsilon, **changes):
    mu = gdp_mu(epsilon=epsilon, delta=DELTA * (1 - LATTICE))
    return {"epsilon": epsilon, "delta": DELTA, "mu": mu, "guarantee": "formal", **changes}


def test_the_total_epsilon_is_the_composed_one():
    """Checked by the textbook formula of a mu-GDP mechanism at mu = root of the sum of squares."""
    total = budgets.total([release(10.0), release(3.0)], DELTA)
    mu, epsilon = total["mu"], total["epsilon"]
    assert mu == pytest.approx(math.hypot(release(10.0)["mu"], release(3.0)["mu"]))
    delta = norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
    assert delta == pytest.approx(DELTA * (1 - LATTICE), rel=1e-6)
    assert 10.0 < epsilon < 13.0


def test_one_release_alone_costs_what_its_card_says():
    total = budgets.total([release(10.0)], DELTA)
    assert (total["epsilon"], total["delta"]) == pytest.approx((10.0, DELTA))
    assert total["on_top"] is None


def test_the_lattice_costs_nothing_more_until_a_total_beyond_what_it_was_cut_for():
    assert budgets.total([release(10.0), release(10.0)], DELTA)["delta"] == DELTA
    total = budgets.total([release(30.0)] * 3, DELTA)
    slack = 3 * LATTICE * DELTA * (1 + math.exp(total["epsilon"])) / (1 + math.exp(30.0))
    assert total["epsilon"] > 30
    assert total["delta"] == pytest.approx(min(1.0, DELTA * (1 - LATTICE) + slack))
    assert total["delta"] > DELTA


def test_a_release_without_mu_comes_on_top():
    alone = budgets.total([release(10.0)], DELTA)
    total = budgets.total([release(10.0), release(9.5, mu=None)], DELTA)
    assert total["epsilon"] == alone["epsilon"]
    assert total["on_top"]["epsilon"] == pytest.approx(19.5)
    assert total["on_top"]["delta"] == pytest.approx(2 * DELTA)


def test_one_release_without_a_guarantee_voids_the_total():
    total = budgets.total([release(10.0), release(3.0, guarantee="none")], DELTA)
    assert total["guarantee"] == "none"
    infinite = {"epsilon": "inf", "delta": DELTA, "mu": "inf", "guarantee": "none"}
    assert math.isinf(budgets.total([release(10.0), infinite], DELTA)["epsilon"])
