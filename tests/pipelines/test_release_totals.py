"""Tests the totals that are announced against the ledger's own refusal."""

import pytest
from ledgers import DELTA, release

from pipelines import release_totals
from pipelines.privacy.ledger import Ledger, LedgerError


def ledger(folder, cap: float | None, lifetime_delta: float | None = None) -> Ledger:
    return Ledger(
        folder / "c0.jsonl", delta=DELTA, lifetime_epsilon=cap, lifetime_delta=lifetime_delta
    )


def test_a_total_is_above_the_cap_where_the_ledger_refuses(tmp_path):
    """The cap lies a little below and a little above what two releases come to."""
    ledger(tmp_path, None).open(release(epsilon=3.0))
    second = release(epsilon=3.0, seed=1)
    both = release_totals.after(ledger(tmp_path, None), [second.cost])
    assert (both.cap, both.is_above_cap) == (None, False)
    for change, refuses in ((-1e-6, True), (1e-6, False)):
        capped = ledger(tmp_path, both.epsilon + change)
        assert release_totals.after(capped, [second.cost]).is_above_cap == refuses
        if refuses:
            with pytest.raises(LedgerError, match="above its lifetime_epsilon"):
                capped.check(second)
        else:
            capped.check(second)


def test_a_total_is_at_the_caps_delta_only_where_there_is_a_cap(tmp_path):
    assert release_totals.after(ledger(tmp_path, 5.0, 1e-7)).delta == 1e-7
    assert release_totals.after(ledger(tmp_path, None, 1e-7)).delta == DELTA


def test_what_was_entered_before_adds_nothing(tmp_path, capsys):
    held = ledger(tmp_path, None)
    held.open(release(epsilon=3.0))
    release_totals.announce({"c0": held}, {"c0": release(epsilon=3.0)})
    assert "together come to epsilon 3.000 at delta 1e-05" in capsys.readouterr().out
