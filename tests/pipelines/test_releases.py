"""Tests a release that several clients make together."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines import release_store, releases
from pipelines.errors import UserError
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Identity, Ledger, Release

DELTA = 1e-5


def test_where_one_ledger_refuses_nobody_is_charged(tmp_path):
    """The refusing client comes last: those before it were asked, and nothing was entered."""
    mu = Budget(10.0, DELTA).mu
    one = Release(
        "dpsgd",
        1,
        {},
        "d",
        {"kind": "gaussian", "mu": mu},
        {"epsilon": 10.0, "delta": DELTA, "mu": mu},
    )
    caps = {"c0": None, "c1": 1.0}
    ledgers = {
        name: Ledger(tmp_path / f"{name}.jsonl", delta=DELTA, lifetime_epsilon=cap)
        for name, cap in caps.items()
    }
    with pytest.raises(UserError, match=r"above its lifetime_epsilon of 1\. Nothing was spent"):
        releases.make_once(ledgers, dict.fromkeys(ledgers, one), lambda folder: None)
    assert [ledger.entries() for ledger in ledgers.values()] == [[], []]


def test_a_ledger_that_changes_after_all_were_asked_names_those_that_are_charged(
    tmp_path, monkeypatch
):
    cost = {"kind": "gaussian", "mu": Budget(2.0, DELTA).mu}
    about = {"epsilon": 2.0, "delta": DELTA, "mu": cost["mu"]}
    part, other = (Release("dpsgd", 1, {"seed": seed}, "d", cost, about) for seed in (0, 1))
    caps = {"c0": None, "c1": 2.5}
    ledgers = {
        name: Ledger(tmp_path / f"{name}.jsonl", delta=DELTA, lifetime_epsilon=cap)
        for name, cap in caps.items()
    }

    def enter_elsewhere(store, was_made):
        # a network's client does so, after all ledgers were asked and before all have entered it
        releases.enter_as_made(ledgers["c1"], other)

    monkeypatch.setattr(releases, "_check_store", enter_elsewhere)
    with pytest.raises(UserError, match=r"of 2\.5.* That holds for c1, .* Charged already: c0\."):
        releases.make_once(ledgers, dict.fromkeys(ledgers, part), lambda folder: None)
    assert [entry["event"] for entry in ledgers["c0"].entries()] == ["open"]
    assert ledgers["c1"].total_epsilon(delta=DELTA) <= 2.5


def released(folder, shares: dict[str, dict], make=lambda folder: None):
    """Makes a joint release of clients, or one client's: {client: parameters}."""
    cost = {"kind": "gaussian", "mu": 1.0}
    about = {"epsilon": 10.0, "delta": DELTA, "guarantee": "formal"}
    parts = {
        name: Release("dpsgd", 1, {"seed": 0, **its}, "d", cost, about)
        for name, its in shares.items()
    }
    ledgers = {name: Ledger(folder / f"{name}.jsonl", delta=DELTA) for name in parts}
    store = releases.make_once(ledgers, parts, make)
    return store, release_store.unfinished(ledgers, parts)


def test_of_each_closed_release_its_store_is_known_and_what_it_had_needed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "ledgers"
    alone, _ = released(folder, {"c1": {}})
    joint = [
        released(folder, {name: {"client": name, "step": step} for name in ("c0", "c1")})
        for step in (1, 2)
    ]
    assert release_store.lost(folder) == [] and release_store.leftovers(folder) == []
    (store, unfinished), (other, _) = joint
    unfinished.mkdir()
    assert release_store.leftovers(folder) == [unfinished]
    store.rmdir()
    assert len(release_store.lost(folder)) == 2
    alone.rmdir()
    other.rmdir()
    assert len(release_store.lost(folder)) == 5


def test_an_entry_that_was_torn_off_does_not_move_the_parts_of_a_later_joint_sum(
    tmp_path, monkeypatch
):
    """The run died between two ledgers, and then others were trusted."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "ledgers"

    def shares(colluding: int, *clients: str) -> dict[str, dict]:
        about = {"colluding": colluding, "epsilon": 3.0, "delta": DELTA}
        return {name: {"client": name, **about} for name in clients}

    def dies(folder):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        released(folder, shares(2, "c0"), dies)
    store, _ = released(folder, shares(1, "c0", "c1"))
    assert release_store.lost(folder) == []
    store.rmdir()
    assert len(release_store.lost(folder)) == 2


def test_a_release_of_which_one_part_is_still_open_is_not_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def dies(folder):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        released(tmp_path / "ledgers", {name: {"client": name} for name in ("c0", "c1")}, dies)
    (tmp_path / "ledgers/releases").mkdir(exist_ok=True)
    ledger = Ledger(tmp_path / "ledgers/c0.jsonl", delta=DELTA)
    ledger.close(ledger.entries()[0]["fingerprint"])
    assert release_store.lost(tmp_path / "ledgers") == []


def test_a_ledger_from_an_older_backup_lacks_what_was_made_since(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "ledgers"
    released(folder, {"c0": {"step": 1}})
    backup = {name: (folder / name).read_bytes() for name in ("c0.jsonl", "c0.head")}
    store, unfinished = released(folder, {"c0": {"step": 2}})
    unfinished.mkdir()
    assert release_store.unknown(folder) == []
    for name, content in backup.items():
        (folder / name).write_bytes(content)
    assert release_store.unknown(folder) == [store]


def parts_of(folder, mu: float, **sigma) -> tuple[dict, dict]:
    """Returns {client: its ledger} and {client: its part} of a joint release with this price."""
    derived = Identity(consequences=frozenset({"sigma"}))
    about = {"epsilon": 10.0, "delta": DELTA, "guarantee": "formal"}
    cost = {"kind": "gaussian", "mu": mu}
    parts = {
        name: Release("m", 1, {"client": name, **sigma}, "d", cost, about, derived)
        for name in ("c0", "c1")
    }
    return {name: Ledger(folder / f"{name}.jsonl", delta=DELTA) for name in parts}, parts


def test_a_joint_release_that_only_one_ledger_knows_is_another(tmp_path, monkeypatch):
    """The run is killed between the two ledgers' last lines, then planned at another price.

    Nobody gets the half that is known.
    """
    monkeypatch.chdir(tmp_path)
    ledgers, parts = parts_of(tmp_path / "ledgers", 2.0, sigma=1.0)
    for name in parts:
        ledgers[name].open(parts[name])
    ledgers["c0"].close(parts["c0"].fingerprint)
    _, later = parts_of(tmp_path / "ledgers", 1.5, sigma=1.3)
    assert [part.recorded for part in releases.match_recorded(ledgers, later).values()] == [
        None,
        None,
    ]
    releases.make_once(ledgers, later, lambda folder: None)
    made = [[entry["event"] for entry in ledger.entries()] for ledger in ledgers.values()]
    assert made == [["open", "close", "open", "close"], ["open", "open", "close"]]


def test_where_a_made_result_is_gone_nobody_is_charged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledgers, parts = parts_of(tmp_path / "ledgers", 2.0)
    store = releases.make_once(ledgers, parts, lambda folder: None)
    before = [ledger.entries() for ledger in ledgers.values()]
    shutil.rmtree(store)
    with pytest.raises(UserError, match=r"its stored result .* is gone"):
        releases.make_once(ledgers, parts, lambda folder: None)
    assert [ledger.entries() for ledger in ledgers.values()] == before


def test_ledgers_on_another_file_system_are_refused_before_anything_is_charged(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    elsewhere = Path("/dev/shm")
    if not os.access(elsewhere, os.W_OK) or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other file system to write to")
    folder = elsewhere / f"fedlens-{os.getpid()}"
    try:
        ledgers, parts = parts_of(folder, 2.0)
        with pytest.raises(UserError, match="lies on another file system"):
            releases.make_once(ledgers, parts, lambda folder: None)
        assert [ledger.entries() for ledger in ledgers.values()] == [[], []]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_result_is_on_the_disk_before_the_ledger_says_that_it_was_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledgers, parts = parts_of(tmp_path / "ledgers", 2.0)
    flushed, real = [], os.fsync

    def fsync(file: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{file}"))
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    store = releases.make_once(
        ledgers, parts, lambda folder: (folder / "model").write_bytes(b"weights")
    )
    names = [Path(path).name for path in flushed]
    closing = max(place for place, name in enumerate(names) if name == "c0.jsonl")
    assert names.index("model") < names.index(store.parent.name) < closing


def test_a_run_over_a_network_keeps_the_price_that_it_had(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledgers, parts = parts_of(tmp_path / "ledgers", 2.0, sigma=1.0)
    store, stated = releases.collect_once(ledgers, parts, lambda folder: None)
    _, cheaper = parts_of(tmp_path / "ledgers", 0.5, sigma=3.0)
    assert releases.collect_once(ledgers, cheaper, lambda folder: None) == (store, stated)
    assert stated["c0"]["cost"] == {"kind": "gaussian", "mu": 2.0}
    _, other = parts_of(tmp_path / "ledgers", 2.0)
    other = {name: replace(part, data="other records") for name, part in other.items()}
    assert releases.collect_once(ledgers, other, lambda folder: None)[0] != store
