"""Tests a fitted generator on disk: whole, readable, and with a guarantee no better than its noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from pipelines.config.data import Profile
from pipelines.errors import UserError
from pipelines.files import new_folder
from pipelines.privacy.accounting import gdp_epsilon
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger.wording import rounded_up
from pipelines.privacy.noise import OsEntropy, SeededForTests
from pipelines.synthesis import dp_moments, release
from pipelines.synthesis.base import Space


@pytest.fixture
def plan(moments_settings, small_space):
    return lambda epsilon=3.0: dp_moments.plan(
        moments_settings(), Budget(epsilon, 1e-5), small_space
    )


MECHANISM = ("dp_moments", dp_moments.VERSION, dp_moments.IDENTITY)
STATE = {"a": np.arange(6.0).reshape(2, 3).T, "b": np.array(3)}


def test_state_and_the_ledgers_name_come_back(tmp_path, plan):
    release.save(tmp_path, STATE, plan(), "f00d")
    state, about = release.load(tmp_path)
    assert set(state) == set(STATE) and all(
        np.array_equal(state[name], STATE[name]) for name in STATE
    )
    assert about == {"fingerprint": "f00d", "weak": []}


def test_the_statement_names_the_real_noise(plan):
    statement = release.described(plan(), OsEntropy())
    assert (statement.guarantee, statement.epsilon) == ("formal", 3.0)
    assert "OpenDP" in statement.noise


def test_seeded_noise_voids_the_guarantee_and_costs_everything(plan):
    statement = release.described(plan(), SeededForTests(0))
    assert statement.guarantee == "none" and statement.sentence.startswith("NO PRIVACY GUARANTEE")
    assert release.entry(*MECHANISM, plan(), statement, data="d", seed=0).cost == {"kind": "none"}


def test_an_infinite_epsilon_stays_without_guarantee_under_real_noise(plan):
    statement = release.described(plan(math.inf), OsEntropy())
    assert (statement.guarantee, statement.noise, statement.epsilon) == ("none", "none", math.inf)


def test_the_entry_costs_the_plans_mu_and_any_change_of_plan_is_another_release(plan):
    def entry(epsilon, **changes):
        made = plan(epsilon)
        known_by = {"data": "d", "seed": 0, **changes}
        return release.entry(*MECHANISM, made, release.described(made, OsEntropy()), **known_by)

    assert entry(3.0).cost == {"kind": "gaussian", "mu": plan(3.0).statement.mu}
    assert entry(3.0).fingerprint == entry(3.0).fingerprint
    assert len({entry(3.0).fingerprint, entry(4.0).fingerprint, entry(3.0, data="e").fingerprint,
                entry(3.0, seed=1).fingerprint}) == 4  # fmt: skip


@pytest.mark.parametrize(
    "spoil", [lambda raw: raw[:20], lambda raw: b"", lambda raw: b"\xff" * len(raw)]
)
def test_a_damaged_generator_is_one_sentence(tmp_path, plan, spoil):
    release.save(tmp_path, STATE, plan(), "f00d")
    path = tmp_path / "generator.safetensors"
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(UserError, match="Run the stage that makes it again"):
        release.load(tmp_path)


def test_an_absent_generator_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="Could not read"):
        release.load(tmp_path / "nothing")


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, plan):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="No space left"), new_folder(tmp_path / "out") as folder:
        (folder / "generator.safetensors").symlink_to("/dev/full")
        release.save(folder, STATE, plan(), "f00d")
    assert not (tmp_path / "out").exists() and not [*(tmp_path / ".scratch" / "partial").iterdir()]


def test_announce_names_the_price_and_the_weakness(capsys, plan):
    from dataclasses import replace

    release.announce(replace(plan(), weak=("too few teachers",)), "digits/c0/x", 2)
    out = capsys.readouterr().out
    both = gdp_epsilon(mu=math.sqrt(2) * plan().statement.mu, delta=1e-5)
    assert "digits/c0/x: epsilon 3, delta 1e-05, mu " in out
    assert (
        out.splitlines()[-1]
        == "  WEAK: this plan can only make noise; its card.md says why, and what would work"
    )
    assert f"all 2 generators are handed out: epsilon {rounded_up(both)}" in out


def test_a_declared_number_of_records_is_no_fact_about_a_release(plan):
    made = plan(3.0)
    declared = replace(made, space=replace(made.space, records=300))
    entries = [
        release.entry(*MECHANISM, one, one.statement, data="d", seed=0) for one in (made, declared)
    ]
    assert entries[0].parameters == entries[1].parameters
    assert "records" not in entries[0].parameters["space"]


def test_public_space_is_the_profile_s():
    profile = Profile(
        source="npz", shape=[4, 5, 3], classes=7, licence="", classifier="mlp", augmentation=None,
        images=9, public_fraction=None, training={}, synthesis={},
    )  # fmt: skip
    assert release.public_space(profile) == Space(4, 5, 3, 7)
    assert release.public_space(profile, 300) == Space(4, 5, 3, 7, records=300)
