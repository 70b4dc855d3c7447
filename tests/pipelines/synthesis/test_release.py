"""A fitted generator on disk: whole, readable, and with a guarantee no better than its noise."""

import math

import numpy as np
import pytest

from pipelines.config import Profile
from pipelines.errors import UserError
from pipelines.files import new_folder
from pipelines.privacy.gaussian import Budget
from pipelines.privacy.noise import OsEntropy, SeededForTests
from pipelines.synthesis import dp_moments, release
from pipelines.synthesis.registry import Space


@pytest.fixture
def plan(moments_settings, small_space):
    return lambda epsilon=3.0: dp_moments.plan(moments_settings(), Budget(epsilon, 1e-5), small_space)


STATE = {"a": np.arange(6.0).reshape(2, 3).T, "b": np.array(3)}


def test_state_and_statement_come_back(tmp_path, plan):
    release.save(tmp_path, STATE, plan(), OsEntropy())
    state, about = release.load(tmp_path)
    assert set(state) == set(STATE) and all(np.array_equal(state[name], STATE[name]) for name in STATE)
    assert about["privacy"]["guarantee"] == "formal"
    assert about["privacy"]["epsilon"] == 3.0
    assert "OpenDP" in about["privacy"]["noise"]


def test_seeded_noise_voids_the_guarantee_on_disk(tmp_path, plan):
    release.save(tmp_path, STATE, plan(), SeededForTests(0))
    privacy = release.load(tmp_path)[1]["privacy"]
    assert privacy["guarantee"] == "none" and privacy["statement"].startswith("NO PRIVACY GUARANTEE")


def test_an_infinite_epsilon_stays_without_guarantee_under_real_noise(tmp_path, plan):
    release.save(tmp_path, STATE, plan(math.inf), OsEntropy())
    privacy = release.load(tmp_path)[1]["privacy"]
    assert privacy["guarantee"] == "none" and float(privacy["epsilon"]) == math.inf


@pytest.mark.parametrize("spoil", [lambda raw: raw[:20], lambda raw: b"", lambda raw: b"\xff" * len(raw)])
def test_a_damaged_generator_is_one_sentence(tmp_path, plan, spoil):
    release.save(tmp_path, STATE, plan(), OsEntropy())
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
        release.save(folder, STATE, plan(), OsEntropy())
    assert not (tmp_path / "out").exists() and not [*(tmp_path / ".scratch" / "partial").iterdir()]


def test_announce_names_the_price_and_the_weakness(capsys, plan):
    from dataclasses import replace

    release.announce(replace(plan(), weak=("too few teachers",)), "digits/c0/x")
    out = capsys.readouterr().out
    assert "digits/c0/x: epsilon 3, delta 1e-05, mu " in out and "WEAK: too few teachers" in out


def test_public_space_is_the_profile_s():
    profile = Profile(
        source="npz", shape=[4, 5, 3], classes=7, licence="", classifier="mlp", augmentation=None,
        datalens={}, dp_moments={}, gan={},
    )  # fmt: skip
    assert release.public_space(profile) == Space(4, 5, 3, 7)
