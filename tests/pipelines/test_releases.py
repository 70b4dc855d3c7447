"""A release that several clients make together."""

import pytest

from pipelines import releases
from pipelines.errors import UserError
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Ledger, Release

DELTA = 1e-5


def test_where_one_ledger_refuses_nobody_is_charged(tmp_path):
    """The refusing client comes last: those before it were asked, and nothing was entered."""
    mu = Budget(10.0, DELTA).mu
    one = Release("dpsgd", 1, {}, "d", {"kind": "gaussian", "mu": mu}, {"epsilon": 10.0, "delta": DELTA, "mu": mu})
    caps = {"c0": None, "c1": 1.0}
    ledgers = {
        name: Ledger(tmp_path / f"{name}.jsonl", delta=DELTA, lifetime_epsilon=cap) for name, cap in caps.items()
    }
    with pytest.raises(UserError, match=r"above its lifetime_epsilon of 1\. Nothing was spent"):
        releases.made_once(ledgers, dict.fromkeys(ledgers, one), lambda folder: None)
    assert [ledger.entries() for ledger in ledgers.values()] == [[], []]


def released(folder, shares: dict[str, dict], make=lambda folder: None):
    """A joint release of clients, or one client's: {client: parameters}."""
    cost = {"kind": "gaussian", "mu": 1.0}
    about = {"epsilon": 10.0, "delta": DELTA, "guarantee": "formal"}
    parts = {name: Release("dpsgd", 1, {"seed": 0, **its}, "d", cost, about) for name, its in shares.items()}
    ledgers = {name: Ledger(folder / f"{name}.jsonl", delta=DELTA) for name in parts}
    store = releases.made_once(ledgers, parts, make)
    return store, releases.unfinished(ledgers, parts)


def test_of_each_closed_release_its_store_is_known_and_what_it_had_needed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "ledgers"
    alone, _ = released(folder, {"c1": {}})
    joint = [released(folder, {name: {"client": name, "step": step} for name in ("c0", "c1")}) for step in (1, 2)]
    assert releases.unstored(folder) == [] and releases.outlived(folder) == []
    (store, unfinished), (other, _) = joint
    unfinished.mkdir()
    assert releases.outlived(folder) == [unfinished]
    store.rmdir()
    assert len(releases.unstored(folder)) == 2
    alone.rmdir()
    other.rmdir()
    assert len(releases.unstored(folder)) == 5


def test_a_release_of_which_one_part_is_still_open_is_not_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def dies(folder):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        released(tmp_path / "ledgers", {name: {"client": name} for name in ("c0", "c1")}, dies)
    (tmp_path / "ledgers/releases").mkdir(exist_ok=True)
    ledger = Ledger(tmp_path / "ledgers/c0.jsonl", delta=DELTA)
    ledger.close(ledger.entries()[0]["fingerprint"])
    assert releases.unstored(tmp_path / "ledgers") == []
