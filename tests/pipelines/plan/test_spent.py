"""Tests the last lines of `make repro`, against the ledgers of a real run."""

import contextlib
import subprocess
import sys

import pytest
from project import ROOT

from pipelines import config
from pipelines.plan import __main__ as plan
from pipelines.plan import spent
from pipelines.privacy.ledger import Ledger
from pipelines.privacy.ledger.wording import rounded_up

pytestmark = pytest.mark.pipeline


def said(project) -> list[str]:
    with contextlib.chdir(project.path):
        return spent.lines(config.load())


def test_the_report_and_each_clients_total_of_its_cap_are_told(built):
    built.edit(lambda params: params["clients"]["c1"].update(lifetime_epsilon=8.0))
    totals = {}
    for client in ("c0", "c1"):
        ledger = Ledger(built.path / f"ledgers/own/{client}.jsonl", delta=1e-5)
        totals[client] = f"epsilon {rounded_up(ledger.total_epsilon())} at delta 1e-05 so far"
    assert said(built) == [
        "The report, which is private: reports/index.html",
        "What each client has spent, all its releases together:",
        f"  own, c0: {totals['c0']}, no cap",
        f"  own, c1: {totals['c1']}, of a cap of 8",
    ]


def test_a_report_of_other_data_sets_is_not_told(built):
    with contextlib.chdir(built.path):
        params = config.load()
        others = params.model_copy(update={"datasets": ["digits"]})
        assert spent.lines(params)[0].endswith("reports/index.html")
        assert spent.lines(others)[0] == spent.lines(params)[1]


def test_before_a_run_there_is_no_report_and_nothing_is_spent(checkout):
    assert said(checkout) == [
        "What each client has spent, all its releases together:",
        "  own, c0 and c1: epsilon 0.000 at delta 1e-05 so far, no cap",
    ]


def test_a_ledger_that_was_edited_is_a_sentence(built, monkeypatch):
    built.edit(lambda params: params["clients"]["c0"].update(lifetime_epsilon=20.0))
    path = built.path / "ledgers/own/c0.jsonl"
    path.write_text(path.read_text().replace("dp_moments", "dp_merf"))
    monkeypatch.setattr(sys, "argv", ["spent"])
    commands = (spent.main, lambda: plan.main([]), lambda: plan.main(["remaining"]))
    for command in commands:
        with contextlib.chdir(built.path), pytest.raises(SystemExit, match="the chain is broken"):
            command()


def test_it_starts_without_torch():
    code = "import sys, pipelines.plan.spent; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
