"""Tests that a ledger may not lie where DVC deletes it with an experiment's folder."""

import pytest

from pipelines.privacy import ledger_folder
from pipelines.privacy.ledger_folder import LedgerError


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Enters a project's root, with one folder of an experiment's own."""
    (tmp_path / "fedlens/.dvc/tmp/exps/standalone/x").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "fedlens")
    monkeypatch.delenv(ledger_folder.VARIABLE, raising=False)
    return tmp_path / "fedlens"


@pytest.fixture
def apart(project, monkeypatch):
    """Enters the experiment's folder."""
    monkeypatch.chdir(project / ".dvc/tmp/exps/standalone/x")
    return project / ".dvc/tmp/exps/standalone/x"


def refused(monkeypatch, value) -> str:
    monkeypatch.setenv(ledger_folder.VARIABLE, str(value))
    with pytest.raises(LedgerError) as error:
        ledger_folder.chosen()
    return str(error.value)


@pytest.mark.parametrize("value", ["elsewhere", "../shared", "/srv/ledgers", ".dvc/tmpx/ledgers"])
def test_in_the_project_itself_any_lasting_folder_will_do(project, monkeypatch, value):
    assert str(ledger_folder.chosen()) == "ledgers"
    monkeypatch.setenv(ledger_folder.VARIABLE, value)
    assert str(ledger_folder.chosen()) == value


def test_an_empty_value_is_none(project, monkeypatch):
    """It would mean the project's root, of which Git takes up everything."""
    monkeypatch.setenv(ledger_folder.VARIABLE, "")
    assert str(ledger_folder.chosen()) == "ledgers"


@pytest.mark.parametrize("value", ["", "ledgers", "./ledgers", "../../../../../ledgers"])
def test_a_run_apart_needs_an_absolute_path(apart, monkeypatch, value):
    assert "set FEDLENS_LEDGERS to the project's, as an absolute path." in refused(
        monkeypatch, value
    )


def test_a_run_apart_charges_the_projects_ledgers(apart, project, monkeypatch):
    monkeypatch.setenv(ledger_folder.VARIABLE, str(project / "ledgers"))
    assert ledger_folder.chosen() == project / "ledgers"


def test_a_folder_below_dvcs_temporary_ones_is_refused_everywhere(project, apart, monkeypatch):
    inside = apart / "ledgers"
    for here in (apart, project):
        monkeypatch.chdir(here)
        assert "must name a folder that stays. Got" in refused(monkeypatch, inside)
    assert "must name a folder that stays. Got" in refused(monkeypatch, ".dvc/tmp/ledgers")


def test_a_link_to_such_a_folder_is_refused(project, apart, tmp_path, monkeypatch):
    (apart / "ledgers").mkdir()
    (tmp_path / "ledgers").symlink_to(apart / "ledgers")
    assert "must name a folder that stays. Got" in refused(monkeypatch, tmp_path / "ledgers")
    monkeypatch.chdir(project)
    (project / "ledgers").symlink_to(apart / "ledgers")
    monkeypatch.delenv(ledger_folder.VARIABLE)
    with pytest.raises(LedgerError, match=r"must name a folder that stays\. Got 'ledgers' instead"):
        ledger_folder.chosen()
