"""Facts tell one release from another, not their consequences, and not the names of settings."""

import shutil
from dataclasses import replace

import pytest
from golden_releases import DELTA, GOLDEN, frozen_settings, of_today

from pipelines.config.dp import DP_BASELINES
from pipelines.config.generators import GENERATORS
from pipelines.privacy.ledger import Identity, Ledger, Release
from pipelines.privacy.ledger.identity import _flattened

NAMES = sorted(frozen_settings())
assert set(NAMES) == {*GENERATORS, *DP_BASELINES}


def release(
    identity: Identity | None = None, cost: float = 1.0, guarantee: str = "formal", **parameters
) -> Release:
    return Release(
        mechanism="m",
        version=1,
        parameters=parameters,
        data="the records",
        cost={"kind": "gaussian", "mu": cost},
        statement={"guarantee": guarantee, "epsilon": 1.0},
        identity=identity or Identity(),
    )


def opened(ledger: Ledger, one: Release) -> str:
    return ledger.open(ledger.recognised(one))


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "c0.jsonl", delta=DELTA)


@pytest.fixture(scope="module")
def today():
    return {name: of_today(name, settings) for name, settings in frozen_settings().items()}


@pytest.fixture
def golden(tmp_path):
    """Returns a factory of the ledger of a client that made a mechanism's release when the golden
    files were written.
    """

    def copy(name: str) -> Ledger:
        for suffix in ("jsonl", "head"):
            shutil.copy(GOLDEN / "ledgers" / f"{name}.{suffix}", tmp_path / f"{name}.{suffix}")
        return Ledger(tmp_path / f"{name}.jsonl", delta=DELTA)

    return copy


@pytest.mark.parametrize("name", NAMES)
def test_the_golden_release_of_every_mechanism_is_recognised_and_charges_nobody(
    name, today, golden
):
    ledger = golden(name)
    entries, total = ledger.entries(), ledger.total_epsilon()
    assert ledger.recognised(today[name]).fingerprint == entries[0]["fingerprint"]
    assert opened(ledger, today[name]) == "reused"
    assert (ledger.entries(), ledger.total_epsilon()) == (entries, total)


def changed(content: dict, path: str) -> dict:
    """Returns the same content with another value at a dotted path."""
    name, _, rest = path.partition(".")
    value = changed(content[name], rest) if rest else f"other than {content[name]}"
    return {**content, name: value}


@pytest.mark.parametrize("name", NAMES)
def test_one_changed_fact_of_any_mechanism_makes_another_release(name, today, golden):
    ledger, one = golden(name), today[name]
    paths = [path for path, _ in _flattened(one.parameters)]
    other = {path: replace(one, parameters=changed(one.parameters, path)) for path in paths}
    recognised = {path for path in paths if ledger.recognised(other[path]).recorded}
    of_noise = set() if one.statement["guarantee"] == "formal" else {"noise"}
    assert (
        recognised == {path for path in paths if not one.identity._counts(path, "other")} - of_noise
    )
    assert {"seed", "epsilon", "delta"}.isdisjoint(recognised)
    assert {path for path in recognised if "settings." in path} <= {"settings.allow_nonprivate"} | {
        path
        for path in paths
        if path.startswith("moments.")  # they follow from the settings beside them
    }
    for field, value in {"version": 99, "mechanism": "other", "data": "other"}.items():
        assert ledger.recognised(replace(one, **{field: value})).recorded is None
    void = {**one.statement, "guarantee": f"not {one.statement['guarantee']}"}
    assert ledger.recognised(replace(one, statement=void)).recorded is None


def test_every_declared_path_exists(today):
    """A misspelt declaration would leave a consequence among the facts."""
    for name, one in today.items():
        known = set()
        for path, _ in _flattened(one.parameters):
            parts = path.split(".")
            known |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
        declared = {*one.identity.consequences, *one.identity.free, *one.identity.neutral}
        of_starts = {path for path in declared if path.startswith("start.")}
        elsewhere = (
            {"start.noise", "start.settings.low_epsilon"} if name == "dpsgd_warm" else of_starts
        )
        by_bound = {
            "epsilon_claimed_by_its_paper",
            "epsilon_at_its_sensitivity",
        }  # of nbafl as printed
        low = {
            "hyperparameters",
            "settings.low_epsilon",
            "signal",
        }  # left out of the entry, of the plan's settings, and where nothing is for a low signal
        assert declared - elsewhere - by_bound - low <= known, name


def test_a_setting_that_is_added_at_its_neutral_value_charges_nobody(ledger):
    before = release(settings={"steps": 5})
    ledger.open(before)
    ledger.close(before.fingerprint)
    declared = Identity(neutral={"settings.warps.flip": 0.0})
    assert (
        opened(ledger, release(declared, settings={"steps": 5, "warps": {"flip": 0.0}})) == "reused"
    )
    assert opened(ledger, release(declared, settings={"steps": 5, "warps": {"flip": 0.5}})) == "new"
    assert opened(ledger, release(settings={"steps": 5, "undeclared": 0.0})) == "new"


def test_a_setting_that_is_renamed_charges_nobody(ledger):
    before = release(settings={"steps": 5})
    ledger.open(before)
    ledger.close(before.fingerprint)
    renamed = Identity(renamed={"settings.steps": "settings.rounds"})
    assert opened(ledger, release(renamed, settings={"rounds": 5})) == "reused"
    assert opened(ledger, release(renamed, settings={"rounds": 6})) == "new"
    assert opened(ledger, release(settings={"rounds": 5})) == "new"


def test_a_setting_that_shapes_nothing_charges_nobody(ledger):
    free = Identity(free=frozenset({"settings.on_weakness"}))
    before = release(free, settings={"steps": 5, "on_weakness": "warn"})
    ledger.open(before)
    ledger.close(before.fingerprint)
    assert opened(ledger, release(free, settings={"steps": 5, "on_weakness": "refuse"})) == "reused"
    assert opened(ledger, release(free, settings={"steps": 5})) == "reused"
    assert opened(ledger, release(free, settings={"steps": 6})) == "new"


def test_a_better_accountant_charges_nobody_for_what_was_made_and_anew_for_what_died(ledger):
    """A run that goes on may not spend more than the entry of the run that died."""
    derived = Identity(consequences=frozenset({"sigma"}))
    made = release(derived, cost=1.0, epsilon=2.0, sigma=3.0)
    ledger.open(made)
    assert opened(ledger, release(derived, cost=1.5, epsilon=2.0, sigma=2.0)) == "new"
    ledger.close(made.fingerprint)
    assert opened(ledger, release(derived, cost=1.2, epsilon=2.0, sigma=2.5)) == "reused"
    assert (
        ledger.recognised(release(derived, cost=1.2, epsilon=2.0, sigma=2.5)).fingerprint
        == made.fingerprint
    )


def test_the_last_bits_of_a_claim_are_no_fact_and_another_budget_is(ledger):
    searched = Identity(searched=frozenset({"epsilon"}))
    ledger.open(release(searched, epsilon=1.9999987633))
    assert opened(ledger, release(searched, epsilon=1.9999987634)) == "resumed"
    assert opened(ledger, release(searched, epsilon=1.999)) == "new"
    assert opened(ledger, release(epsilon=1.9999987634)) == "new"


def test_a_number_that_somebody_chose_counts_to_its_last_bit(ledger):
    ledger.open(release(settings={"expected_lot": 1_000_000.0}))
    assert opened(ledger, release(settings={"expected_lot": 1_000_004.0})) == "new"


def test_where_there_is_no_guarantee_the_noise_tells_releases_apart(ledger):
    """A void release of test noise is not one of real noise."""
    derived = Identity(consequences=frozenset({"noise"}))
    ledger.open(release(derived, guarantee="none", noise="seeded"))
    assert opened(ledger, release(derived, guarantee="none", noise="seeded")) == "resumed"
    assert (
        opened(ledger, release(derived, guarantee="none", noise="of the operating system")) == "new"
    )
    ledger.open(release(derived, noise="of the operating system"))
    assert opened(ledger, release(derived, noise="of the operating system, reworded")) == "resumed"


def test_what_died_is_resumed_only_under_the_same_guarantee(ledger):
    ledger.open(release(epsilon=1.0))
    assert opened(ledger, release(epsilon=1.0)) == "resumed"
    assert opened(ledger, release(epsilon=1.0, guarantee="none")) == "new"
