"""A release that several clients make together."""

import pytest

from pipelines import releases
from pipelines.errors import UserError
from pipelines.privacy.gaussian import Budget
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
