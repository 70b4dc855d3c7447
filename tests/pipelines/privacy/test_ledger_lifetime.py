"""Tests the delta of a lifetime cap. A larger one gives a smaller total, and must lift no cap."""

import re

import pytest
from ledgers import DELTA, release
from shipped import changed, load, mistakes

from pipelines import releases
from pipelines.privacy import accounting
from pipelines.privacy.ledger import Ledger, LedgerError
from pipelines.privacy.ledger.wording import rounded_up

CAP = 1.4  # two releases at epsilon 1 come to 1.47 at delta 1e-5, and to less than 1 at 1e-2
LARGE = 1e-2
TWO = [release().cost, release(seed=2).cost]


def ledger(tmp_path, **settings) -> Ledger:
    return Ledger(tmp_path / "c0.jsonl", **{"delta": DELTA, "lifetime_epsilon": CAP, **settings})


def refusal(of: Ledger, **settings) -> str:
    entries = of.entries()
    with pytest.raises(LedgerError) as by_opening:
        of.open(release(seed=2, **settings))
    with pytest.raises(LedgerError) as by_checking:
        of.check(release(seed=2, **settings))
    assert of.entries() == entries and str(by_opening.value) == str(by_checking.value)
    return str(by_opening.value)


def test_the_figures_of_this_file():
    at = {delta: accounting.total_epsilon(costs=TWO, delta=delta) for delta in (DELTA, LARGE)}
    assert at[LARGE] < 1 < CAP < at[DELTA]


def test_where_delta_never_changed_the_refusal_says_no_more_than_it_did(tmp_path):
    ledger(tmp_path).open(release())
    total = accounting.total_epsilon(costs=TWO, delta=DELTA)
    assert refusal(ledger(tmp_path)) == (
        f"This dp_moments release would bring c0 to a total epsilon of {rounded_up(total)} "
        "at delta 1e-05, above its "
        "lifetime_epsilon of 1.4. Nothing was spent."
    )


def test_a_larger_delta_does_not_lift_the_cap(tmp_path):
    ledger(tmp_path).open(release())
    said = refusal(ledger(tmp_path, delta=LARGE))
    assert "at delta 1e-05 (the smallest that its ledger states; a lifetime_delta" in said
    assert "above its lifetime_epsilon of 1.4. Nothing was spent." in said


def test_a_smaller_delta_of_today_counts(tmp_path):
    ledger(tmp_path, delta=LARGE).open(release(delta=LARGE, epsilon=0.5))
    assert ledger(tmp_path).cap_delta() == DELTA


def test_the_delta_that_was_set_with_the_cap_holds_whatever_is_stated(tmp_path):
    ledger(tmp_path).open(release())
    assert ledger(tmp_path, lifetime_delta=LARGE).open(release(seed=2)) == "new"
    for delta in (DELTA, LARGE):
        said = refusal(ledger(tmp_path, delta=delta, lifetime_delta=1e-7), number=3)
        assert "at delta 1e-07 (its lifetime_delta), above its lifetime_epsilon" in said


def test_a_release_of_no_guarantee_is_refused_in_words(tmp_path):
    of = ledger(tmp_path)
    with pytest.raises(
        LedgerError,
        match=r"total epsilon of infinity \(a release without a guarantee is among them\)",
    ):
        of.open(release(cost={"kind": "none"}))


def test_a_total_beyond_what_is_claimed_is_refused_in_words(tmp_path):
    of = ledger(tmp_path, lifetime_epsilon=29.0)
    for seed in range(5):
        of.open(release(epsilon=9.0, seed=seed))
    with pytest.raises(
        LedgerError, match=r"total epsilon of more than 30 \(beyond which nothing is claimed\)"
    ):
        of.open(release(epsilon=20.0, seed=9))


def test_cap_and_delta_come_from_the_clients_block(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FEDLENS_LEDGERS", str(tmp_path))
    # the ledgers and the folder that a command runs in lie on one file system
    monkeypatch.chdir(tmp_path)
    own = {"epsilon": 1.0, "lifetime_epsilon": 1.4, "lifetime_delta": 1e-3}
    of = releases.ledger_of(load(changed(("clients", "c0"), own)), "digits", "c0")
    assert (of.lifetime_epsilon, of.lifetime_delta, of.delta) == (1.4, 1e-3, 1e-5)
    releases.make_once({"c0": of}, {"c0": release()}, lambda folder: None)
    said = capsys.readouterr().out
    total = accounting.total_epsilon(costs=TWO[:1], delta=1e-3)
    assert (
        f"all its releases together come to epsilon {rounded_up(total)} "
        "of a lifetime 1.4 at delta 0.001" in said
    )


def test_a_delta_without_a_cap_is_a_mistake():
    (line,) = mistakes(changed(("clients", "c0"), {"epsilon": 1.0, "lifetime_delta": 1e-5}))
    assert re.fullmatch(
        r"The 'lifetime_delta' parameter of clients\.c0 must be null .* Got 1e-05 instead\. .*",
        line,
    )


@pytest.mark.parametrize("bad", [0, 1, -1e-5, True, "1e-5"])
def test_a_bad_delta_is_one_sentence(bad):
    own = {"epsilon": 1.0, "lifetime_epsilon": 2.0, "lifetime_delta": bad}
    (line,) = mistakes(changed(("clients", "c0"), own))
    rule = "must be a float in [1e-15, 0.5]"
    assert (
        line
        == f"The 'lifetime_delta' parameter of clients.c0 {rule}. Got {bad!r} instead. (params.yaml)"
    )
