"""Tests where things lie, and where a ledger may not."""

import pytest

from pipelines import paths
from pipelines.errors import UserError


def test_a_run_apart_is_refused_unless_it_is_told_where_the_ledgers_are(tmp_path, monkeypatch):
    """`dvc exp run --temp`: what it spends would go with its folder, and no cap would ever bind."""
    apart = tmp_path / ".dvc/tmp/exps/standalone/x"
    apart.mkdir(parents=True)
    monkeypatch.delenv(paths.LEDGERS, raising=False)
    assert paths.ledgers().name == "ledgers"
    monkeypatch.chdir(apart)
    with pytest.raises(UserError, match="--temp"):
        paths.ledgers()
    monkeypatch.setenv(paths.LEDGERS, "ledgers")
    with pytest.raises(UserError, match="as an absolute path"):
        paths.ledgers()
    monkeypatch.setenv(paths.LEDGERS, str(tmp_path / "ledgers"))
    assert paths.ledgers() == tmp_path / "ledgers"
