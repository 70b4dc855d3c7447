"""Tests `make plan` against what a real `dvc repro` entered in the ledgers, at tiny size."""

import contextlib
import hashlib
from pathlib import Path

import pytest

from pipelines import config, release_totals, releases
from pipelines.errors import UserError
from pipelines.plan import __main__ as plan
from pipelines.plan import records, rows
from pipelines.plan.rows import MADE, NEW
from pipelines.privacy.ledger import Ledger

pytestmark = pytest.mark.pipeline


def planned(project) -> list[rows.Row]:
    with contextlib.chdir(project.path):
        params = config.load()
        ledgers = {name: releases.ledger_of(params, "own", name) for name in params.clients}
        return list(rows.of(params, "own", ledgers, records.dealt(params, "own")))


def said(project, capsys) -> tuple[str, int]:
    """Returns what the command prints, and its exit status."""
    with contextlib.chdir(project.path):
        try:
            plan.main([])
            status = 0
        except SystemExit as end:
            status = end.code
    return capsys.readouterr().out, status


def tree(root: Path) -> dict[str, str]:
    """Returns the content of every file below a folder, as hashes, and its empty folders."""
    found = {}
    for path in sorted(root.rglob("*")):
        is_file = path.is_file()
        found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() if is_file else "folder"
    return found


def entered(ledger: Ledger) -> list[tuple]:
    """Returns (mechanism, epsilon, delta, total up to it) of each release in a ledger."""
    opened = [entry for entry in ledger.entries() if entry["event"] == "open"]
    found = []
    for number, entry in enumerate(opened):
        alone = Ledger(ledger.path.with_name("none.jsonl"), delta=ledger.delta)
        costs = [each["cost"] for each in opened[: number + 1]]
        total = release_totals.after(alone, costs).epsilon
        stated = entry["statement"]
        found.append((entry["mechanism"], stated["epsilon"], stated["delta"], total))
    return found


def test_what_is_announced_is_what_a_run_enters(built, tmp_path, monkeypatch):
    """Before empty ledgers the plan has the very lines that the real run wrote, in their order."""
    own = {
        name: Ledger(built.path / f"ledgers/own/{name}.jsonl", delta=1e-5) for name in ("c0", "c1")
    }
    monkeypatch.setenv("FEDLENS_LEDGERS", str(tmp_path / "empty"))
    announced = planned(built)
    assert {row.state for row in announced} == {NEW}
    for client, ledger in own.items():
        lines = []
        for row in announced:
            if row.client == client:
                lines.append((row.name, row.epsilon, row.delta, row.total.epsilon))
        assert lines == entered(ledger)
        assert [name for name, *_ in lines] == ["datalens", "dp_moments", "dpsgd"]


def test_after_a_run_nothing_is_new_and_nothing_is_written(built, capsys):
    before = tree(built.path)
    text, status = said(built, capsys)
    assert status == 0
    assert "own: no release is new, so that `dvc repro` spends nothing." in text
    assert {row.state for row in planned(built)} == {MADE}
    assert tree(built.path) == before


def test_a_fresh_checkout_is_announced_and_left_as_it_is(checkout, capsys):
    before = tree(checkout.path)
    text, status = said(checkout, capsys)
    assert (status, "own, c0 and c1: 3 new releases" in text) == (0, True)
    assert tree(checkout.path) == before


def test_a_changed_budget_is_new_for_its_client_and_a_joint_run_for_all(built):
    built.edit(lambda params: params["clients"]["c1"].update(epsilon=2.0))
    new = [(row.client, row.name) for row in planned(built) if row.state == NEW]
    assert new == [("c1", "datalens"), ("c1", "dp_moments"), ("c0", "dpsgd"), ("c1", "dpsgd")]


def test_changed_records_make_all_new(built):
    built.edit(lambda params: params.update(seed=8))
    assert {row.state for row in planned(built)} == {NEW}


def test_a_cap_is_told_as_the_stage_tells_it(built, capsys):
    """The plan names the stage and the total with which its ledger then refuses."""
    row = [row for row in planned(built) if row.client == "c1"][-1]
    cap = round(row.total.epsilon + 0.01, 2)
    built.edit(lambda params: params["clients"]["c1"].update(epsilon=2.0, lifetime_epsilon=cap))
    text, status = said(built, capsys)
    assert status == 1
    assert "ABOVE THE CAP" in text
    assert "`dvc repro` would end there, at train_generator@own-c1-datalens." in text
    total = text.partition("would refuse datalens, which brings its total to ")[2].split(" at")[0]
    total = total.removeprefix("epsilon ")
    cell = ("--dataset", "own", "--client", "c1", "--generator", "datalens")
    with pytest.raises(UserError, match=f"a total epsilon of {total} at delta 1e-05, above"):
        built.stage("train_generator", *cell)


def test_a_mistake_is_a_sentence(checkout):
    with contextlib.chdir(checkout.path), pytest.raises(SystemExit, match=r"^Error: .*own\.npz"):
        Path("raw/own.npz").unlink()
        plan.main([])
