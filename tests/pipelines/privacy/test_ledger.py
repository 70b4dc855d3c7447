"""Tests that the ledger charges nothing twice, forgets nothing, and shows every edit."""

import math
import multiprocessing

import pytest
from ledgers import DELTA, release

from pipelines.privacy import accounting
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Ledger, LedgerError, Release


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "digits" / "c0.jsonl", delta=DELTA)


def test_a_release_is_entered_before_and_closed_after(ledger):
    one = release()
    assert ledger.open(one) == "new"
    assert [entry["event"] for entry in ledger.entries()] == ["open"]
    with pytest.raises(LedgerError, match="knows no closed release"):
        ledger.statement(one.fingerprint)
    ledger.close(one.fingerprint)
    assert ledger.statement(one.fingerprint)["epsilon"] == 1.0


def test_a_release_may_be_known_by_its_code_and_records_alone(ledger):
    one = release(seed=1)
    assert not ledger.may_know(one.mechanism, one.version, one.data)
    ledger.open(one)
    assert ledger.may_know(one.mechanism, one.version, one.data)
    assert not ledger.may_know(one.mechanism, one.version + 1, one.data)
    assert not ledger.may_know(one.mechanism, one.version, "other records")


def test_reading_a_ledger_that_is_not_there_leaves_no_file(ledger):
    ledger.path.parent.mkdir()
    assert ledger.entries() == [] and ledger.total_epsilon() == 0
    assert list(ledger.path.parent.iterdir()) == []


def test_the_same_release_is_reused_and_a_dead_one_resumed_and_both_are_charged_once(ledger):
    one = release()
    alone = accounting.gdp_epsilon(mu=one.cost["mu"], delta=DELTA)
    ledger.open(one)
    assert ledger.open(one) == "resumed"
    assert ledger.total_epsilon() == pytest.approx(alone)
    ledger.close(one.fingerprint)
    assert ledger.open(one) == "reused"
    ledger.close(one.fingerprint)
    assert ledger.total_epsilon() == pytest.approx(alone)
    assert len(ledger.entries()) == 2


@pytest.mark.parametrize(
    "other",
    [
        release(seed=2),
        release(data="e"),
        Release("datalens", 1, {}, "d", release().cost, {}),
        release(1.0, clip=3),
    ],
)
def test_anything_else_is_another_release_and_composes(ledger, other):
    ledger.open(release())
    assert ledger.open(other) == "new"
    mu = math.sqrt(2) * release().cost["mu"]
    assert ledger.total_epsilon() == pytest.approx(accounting.gdp_epsilon(mu=mu, delta=DELTA))


def test_a_new_version_of_a_mechanism_is_another_release(ledger):
    one = release()
    ledger.open(one)
    assert (
        ledger.open(Release(one.mechanism, 2, one.parameters, one.data, one.cost, one.statement))
        == "new"
    )


def test_checking_first_refuses_as_opening_would_and_enters_nothing(tmp_path):
    ledger = Ledger(tmp_path / "c0.jsonl", delta=DELTA, lifetime_epsilon=1.4)
    ledger.open(release())
    ledger.check(release())  # known: it costs nothing more
    with pytest.raises(LedgerError, match="above its lifetime_epsilon"):
        ledger.check(release(seed=2))
    assert len(ledger.entries()) == 1


def _append(path, count):
    ledger = Ledger(path, delta=DELTA)
    for number in range(count):
        ledger.open(release(number=number))


def test_reading_while_another_process_writes_is_no_sign_of_tampering(tmp_path):
    path = tmp_path / "c0.jsonl"
    writer = multiprocessing.get_context("fork").Process(target=_append, args=(path, 60))
    writer.start()
    seen = []
    while writer.is_alive():
        seen.append(len(Ledger(path, delta=DELTA).entries()))
    writer.join()
    assert writer.exitcode == 0 and sorted(seen) == seen
    assert len(Ledger(path, delta=DELTA).entries()) == 60


def test_a_lifetime_cap_refuses_before_anything_is_entered(tmp_path):
    ledger = Ledger(tmp_path / "c0.jsonl", delta=DELTA, lifetime_epsilon=1.4)
    ledger.open(release())
    with pytest.raises(
        LedgerError, match=r"above its lifetime_epsilon of 1\.4\. Nothing was spent"
    ):
        ledger.open(release(seed=2))
    assert len(ledger.entries()) == 1
    assert ledger.open(release()) == "resumed"


def test_a_release_may_close_below_its_plan(ledger):
    planned = {"kind": "sampled_gaussian", "schedule": [[1.0, 0.1, 100]]}
    one = Release("dpsgd", 1, {}, "d", planned, {})
    ledger.open(one)
    before = ledger.total_epsilon()
    ledger.close(one.fingerprint, cost={**planned, "schedule": [[*planned["schedule"][0][:2], 10]]})
    assert 0 < ledger.total_epsilon() < before / 2


def test_gaussian_and_sampled_releases_compose_below_the_sum_of_their_epsilons(ledger):
    sampled = {"kind": "sampled_gaussian", "schedule": [[1.0, 0.1, 100]]}
    alone = accounting.total_epsilon(costs=[sampled], delta=DELTA)
    ledger.open(release(3.0))
    together = ledger.total_epsilon([sampled])
    assert max(3.0, alone) < together < 3.0 + alone


def test_pld_agrees_with_the_exact_bound_on_gaussians_alone():
    costs = [{"kind": "gaussian", "mu": 0.7}, {"kind": "gaussian", "mu": 1.1}]
    none = {"kind": "sampled_gaussian", "schedule": [[1e6, 0.001, 1]]}
    exact = accounting.total_epsilon(costs=costs, delta=DELTA)
    assert accounting.total_epsilon(costs=[*costs, none], delta=DELTA) == pytest.approx(
        exact, rel=1e-3
    )


def test_beyond_what_the_lattice_was_cut_for_no_total_is_claimed():
    ten = [{"kind": "gaussian", "mu": Budget(10.0, DELTA).mu}] * 10
    assert accounting.total_epsilon(costs=ten[:4], delta=DELTA) < accounting.LARGEST_EPSILON
    assert accounting.total_epsilon(costs=ten, delta=DELTA) == math.inf


def test_a_release_without_privacy_makes_the_total_infinite(ledger):
    ledger.open(release())
    assert ledger.total_epsilon([{"kind": "none"}]) == math.inf


def enter(path, first):
    for seed in range(first, first + 10):
        ledger = Ledger(path, delta=DELTA)
        ledger.open(release(seed=seed))
        ledger.close(release(seed=seed).fingerprint)


def test_two_processes_at_once_lose_no_line(ledger):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=enter, args=(ledger.path, first)) for first in (0, 10, 5)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert len(ledger.entries()) == 2 * 20  # 5 to 14 were entered by two of them, and once
    mu = math.sqrt(20) * release().cost["mu"]
    assert ledger.total_epsilon() == pytest.approx(accounting.gdp_epsilon(mu=mu, delta=DELTA))
