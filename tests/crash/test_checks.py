"""Tests the checks: each damage to a checkout that was whole gives a sentence."""

import json
import shutil
from pathlib import Path

import pytest
from crash.checks import Undisturbed

from pipelines.privacy.ledger import Ledger, Release

OUTPUT = "models/private/generators/own/c0/dp_moments"
CARD = "data/synthetic/own/c0/dp_moments/card.json"


def released(path: Path, seed: int = 0, mu: float = 1.0, close: bool = True) -> str:
    statement = {"epsilon": 10.0, "delta": 1e-5, "guarantee": "formal"}
    made = Release("dp_moments", 1, {"seed": seed}, "d", {"kind": "gaussian", "mu": mu}, statement)
    ledger = Ledger(path / "ledgers/own/c0.jsonl", delta=1e-5)
    ledger.open(made)
    if close:
        ledger.close(made.fingerprint)
    return made.fingerprint


@pytest.fixture
def whole(tmp_path) -> Undisturbed:
    path = tmp_path / "whole"
    fingerprint = released(path)
    (path / "ledgers/own/releases/store").mkdir(parents=True)
    for name, content in {
        f"{OUTPUT}/release.json": {"fingerprint": fingerprint},
        CARD: {"privacy": {"epsilon": 10.0}},
    }.items():
        (path / name).parent.mkdir(parents=True)
        (path / name).write_text(json.dumps(content))
    (path / OUTPUT / "salt").write_bytes(b"s" * 32 + b"\0" * 5)
    return Undisturbed(path, exact=True)


@pytest.fixture
def checkout(whole, tmp_path) -> Path:
    shutil.copytree(whole.path, tmp_path / "checkout")
    return tmp_path / "checkout"


def ended(whole, checkout) -> list[str]:
    return [
        *whole.unlike(checkout, [*whole.outputs], {"c0": [whole.entries["c0"][0]["fingerprint"]]})
    ]


def test_a_checkout_that_is_as_undisturbed_passes(whole, checkout):
    (checkout / OUTPUT / "salt").write_bytes(
        b"s" * 32 + b"\0" * 9
    )  # as long as seconds elsewhere are
    assert ended(whole, checkout) == []
    shutil.rmtree(checkout / OUTPUT)
    assert [*whole.broken(checkout)] == []  # absent is not half there
    assert ended(whole, checkout) == [f"{OUTPUT} is not there"]


DAMAGES = {
    "a file is missing": (lambda path: (path / OUTPUT / "salt").unlink(), "undisturbed"),
    "other bytes": (
        lambda path: (path / OUTPUT / "salt").write_bytes(b"t" * 32),
        "has other bytes",
    ),
    "another release": (lambda path: released(path, seed=1), "charged for what the plan has not"),
    "a line is cut": (lambda path: cut(path / "ledgers/own/c0.jsonl"), "ledger: "),
    "an epsilon of no ledger": (
        lambda path: (path / CARD).write_text('{"privacy": {"epsilon": 9.0}}'),
        "states an epsilon",
    ),
    "a release of no ledger": (
        lambda path: (path / OUTPUT / "release.json").write_text('{"fingerprint": "f"}'),
        "its ledger has not as made",
    ),
    "a noisy run of no ledger": (
        lambda path: noisy(path, epsilon=9.0),
        "states another privacy for c0",
    ),
    "a release twice": (lambda path: repeated(path / "ledgers/own/c0.jsonl"), "ledger: "),
    "a release without its end": (
        lambda path: released(path, seed=2, close=False),
        "lines, and 2 undisturbed",
    ),
    "a dropped output": (lambda path: shutil.rmtree(path / OUTPUT), "is not there"),
    "a temporary file": (lambda path: (path / "data/.x.tmp").touch(), "left behind"),
    "a folder in the making": (
        lambda path: (path / ".scratch/partial/x").mkdir(parents=True),
        "left behind",
    ),
    "a store too many": (
        lambda path: (path / "ledgers/own/releases/other").mkdir(),
        "no undisturbed run makes",
    ),
    "what a release needed": (
        lambda path: (path / "ledgers/own/releases/.s").mkdir(),
        "needed to go on",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damage_is_told(whole, checkout, damage):
    done, says = DAMAGES[damage]
    done(checkout)
    assert any(says in sentence for sentence in ended(whole, checkout))


def noisy(path: Path, epsilon: float) -> None:
    file = path / "models/private/dp_baselines/own/dpsgd/c/results.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"statements": {"c0": {"epsilon": epsilon}}}))


def repeated(file: Path) -> None:
    file.write_text(file.read_text() + file.read_text())


def cut(file: Path) -> None:
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
