"""Tests where things lie, and where a ledger may not."""

import pytest

from pipelines import paths
from pipelines.config.generators import GENERATORS
from pipelines.config.training import BASELINES
from pipelines.errors import UserError


def test_no_method_has_the_folder_of_another_or_of_a_generator():
    folders = set()
    for generator in GENERATORS:
        for method in ("pppfl", *BASELINES):
            folders.add(paths.initial("digits", paths.of_method(generator, method)))
    assert len(folders) == len(GENERATORS) * (1 + len(BASELINES))
    assert not any("-" in name for name in (*GENERATORS, *BASELINES))
    assert paths.personal("digits", "gan") == paths.personal(
        "digits", paths.of_method("gan", "pppfl")
    )


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
