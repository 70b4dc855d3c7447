"""Tests the room under a cap by brute force: that many releases are entered, and one more is refused."""

import contextlib

import pytest
from ledgers import DELTA, release

from pipelines.plan import __main__ as plan
from pipelines.plan import remaining
from pipelines.plan.candidates import Candidate, Part
from pipelines.privacy import accounting
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Ledger, LedgerError
from pipelines.privacy.ledger.wording import rounded_up

FILTER = accounting.RenyiFilter(1.0, DELTA, order=12.0)
COSTS = {
    "gaussian": {"kind": "gaussian", "mu": Budget(1.0, DELTA).mu},
    "sampled": {"kind": "sampled_gaussian", "schedule": [[3.0, 0.25, 40], [2.0, 1.0, 1]]},
    "filtered": {"kind": "renyi", "order": FILTER.order, "rdp": FILTER.budget},
    "none": {"kind": "none"},
}


def held(path, cap: float) -> Ledger:
    """Returns a ledger with two releases in it."""
    ledger = Ledger(path, delta=DELTA, lifetime_epsilon=cap)
    ledger.open(release(epsilon=1.0, seed="held"))
    ledger.open(release(epsilon=0.5, seed="sampled", cost=COSTS["sampled"]))
    return ledger


@pytest.mark.parametrize(
    ("kind", "cap", "expected"),
    [
        ("gaussian", 4.2, None),
        ("gaussian", 3.5, 0),
        ("sampled", 6.0, None),
        ("filtered", 9.0, None),
        ("none", 9.0, 0),
    ],
)
def test_so_many_are_entered_and_one_more_is_refused(tmp_path, kind, cap, expected):
    ledger = held(tmp_path / "own/c0.jsonl", cap)
    count = remaining.room(ledger, COSTS[kind])
    assert 0 <= count < remaining.MOST
    assert expected is None or count == expected
    for number in range(count):
        ledger.open(release(cost=COSTS[kind], seed=number))
    with pytest.raises(LedgerError, match="Nothing was spent"):
        ledger.open(release(cost=COSTS[kind], seed=count))


def test_a_cap_that_is_passed_leaves_no_room_and_a_wide_one_is_counted_to_the_end(tmp_path):
    held(tmp_path / "c0.jsonl", 20.0)
    passed = Ledger(tmp_path / "c0.jsonl", delta=DELTA, lifetime_epsilon=0.1)
    assert remaining.room(passed, COSTS["gaussian"]) == 0
    wide = Ledger(tmp_path / "c1.jsonl", delta=DELTA, lifetime_epsilon=20.0)
    assert remaining.room(wide, {"kind": "gaussian", "mu": 0.01}) == remaining.MOST


def joint(name: str, mu: float, *clients: str) -> Candidate:
    """Returns a release that these clients make together, at one price."""
    part = Part(1.0, DELTA, {"kind": "gaussian", "mu": mu}, None)
    return Candidate(name, "stage", dict.fromkeys(clients, part), is_joint=len(clients) > 1)


def test_the_room_of_each_group_is_that_of_its_least_member(tmp_path, monkeypatch):
    """Whoever releases alone has no part in what a group has room for."""
    caps = {"c0": 3.0, "c1": 9.0, "c2": 2.0, "c3": 9.0, "c4": None}
    ledgers = {}
    for client, cap in caps.items():
        ledgers[client] = Ledger(tmp_path / f"{client}.jsonl", delta=DELTA, lifetime_epsilon=cap)
    planned = [
        joint("joint_moments", 0.5, "c0"),
        joint("joint_moments", 0.2, "c1", "c2", "c3", "c4"),
        joint("dpsgd", 0.3, *caps),
    ]
    monkeypatch.setattr(remaining.candidates, "all_of", lambda *_: iter(planned))
    monkeypatch.setattr(remaining.records, "nobodys", lambda _: None)
    group, everybody = remaining.of(None, "digits", ledgers)
    least = remaining.room(ledgers["c2"], {"kind": "gaussian", "mu": 0.2})
    assert group.together == {("c1", "c2", "c3", "c4"): least}
    assert group.counts["c0"] == remaining.room(ledgers["c0"], {"kind": "gaussian", "mu": 0.5})
    assert list(everybody.together) == [tuple(caps)]
    said = remaining.lines(None, "digits", ledgers)[-1]
    assert f"joint_moments (c1, c2, c3 and c4) {least}, dpsgd " in said


def said(project, capsys) -> str:
    with contextlib.chdir(project.path):
        plan.main(["remaining"])
    return capsys.readouterr().out


def test_no_cap_is_said(checkout, capsys):
    assert "own, c0 and c1: no cap, so that any number is allowed." in said(checkout, capsys)


@pytest.mark.pipeline
def test_the_room_after_a_real_run_is_that_of_its_ledgers(built, capsys):
    cap = 6.3
    built.edit(lambda params: params["clients"]["c1"].update(lifetime_epsilon=cap))
    text = said(built, capsys)
    assert "own, c0: no cap" in text
    ledger = Ledger(built.path / "ledgers/own/c1.jsonl", delta=DELTA, lifetime_epsilon=cap)
    so_far = (
        f"epsilon {rounded_up(ledger.total_epsilon())} at delta 1e-05 so far, of a cap of {cap}"
    )
    assert f"own, c1: {so_far}; room for\n" in text
    counts = dict(line.split() for line in text.split("room for\n")[1].splitlines()[:3])
    opened = [entry for entry in ledger.entries() if entry["event"] == "open"]
    costs = {entry["mechanism"]: entry["cost"] for entry in opened}
    assert set(counts) == set(costs) == {"datalens", "dp_moments", "dpsgd"}
    for name, cost in costs.items():
        assert ledger.total_epsilon([cost] * int(counts[name])) <= cap
        assert ledger.total_epsilon([cost] * (int(counts[name]) + 1)) > cap
    assert f"A joint run needs room at every client: dpsgd {counts['dpsgd']}." in text
