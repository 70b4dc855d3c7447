"""Tests what `dvc push` would upload against the ledgers. tests/test_pipeline.py tests how it is
read from DVC's cache.
"""

import math
from dataclasses import replace

import parameter_files
import pytest
from project import ROOT

from pipelines import config, releases
from pipelines.files import standard
from pipelines.guard import provenance
from pipelines.privacy.ledger import Release

EXPORT, INITIAL = "data/synthetic/digits/c0/dp_moments", "models/initial/digits/dp_moments"


@pytest.fixture
def params(tmp_path, monkeypatch):
    parameter_files.copy_files(ROOT, tmp_path)
    monkeypatch.chdir(tmp_path)
    return config.load()


def release(epsilon=10.0, data="d", seed=0) -> Release:
    formal = math.isfinite(epsilon)
    return Release(
        mechanism="dp_moments",
        version=1,
        parameters={"seed": seed},
        data=data,
        cost={"kind": "gaussian", "mu": 1.0} if formal else {"kind": "none"},
        statement={
            "epsilon": epsilon,
            "delta": 1e-5,
            "guarantee": "formal" if formal else "none",
            "not": ("x",),
        },
    )


def entered(params, client: str, made: Release) -> dict:
    """Enters a release as made; its card."""
    ledger = releases.ledger_of(params, "digits", client)
    ledger.open(made)
    ledger.close(made.fingerprint)
    name = releases.public_name(params, "digits", client, made.fingerprint)
    return {"release": name, "privacy": standard({**made.statement, "cost": made.cost})}


@pytest.fixture
def found(monkeypatch, tmp_path):
    """Returns (path, card) -> the sentences about such an output."""

    def problems(path: str, card: dict | None) -> list[str]:
        monkeypatch.setattr(provenance, "cards", lambda outputs: [(path, card)])
        return provenance.problems(tmp_path, [])

    return problems


@pytest.mark.parametrize("epsilon", [10.0, math.inf])
def test_a_card_that_says_what_the_ledger_says_passes(params, found, epsilon):
    assert found(EXPORT, standard(entered(params, "c0", release(epsilon)))) == []


def test_a_release_that_no_ledger_knows_is_named(params, found):
    card = entered(params, "c0", release())
    (line,) = found(EXPORT, {**card, "release": "0" * 32})
    assert line.startswith(
        f"{EXPORT} names a release that is not entered as made in the ledger of c0."
    )
    assert found(EXPORT.replace("c0", "c1"), card)  # another client's
    assert found(EXPORT.replace("c0", "left"), card)  # no longer on the roster
    assert found(EXPORT, {**card, "release": release().fingerprint})


def test_a_release_of_several_clients_is_looked_for_in_every_ledger(params, found):
    joint = release()
    joint = replace(joint, statement={**joint.statement, "details": {"clients": 2}})
    cards = {client: entered(params, client, joint) for client in ("c0", "c1")}
    together = {client: card["release"] for client, card in cards.items()}
    card = {**cards["c0"], "together": together}
    assert found(EXPORT, card) == []
    (line,) = found(EXPORT, cards["c0"])
    assert "states another privacy" in line
    other = entered(params, "c1", release(seed=5))
    (line,) = found(EXPORT, {**card, "together": {**together, "c1": other["release"]}})
    assert "states another privacy" in line
    (line,) = found(EXPORT, {**card, "together": {**together, "c1": "0" * 32}})
    assert "not entered as made in the ledger of c1" in line
    (line,) = found(EXPORT, {**card, "release": "0" * 32})
    assert "not entered as made in the ledger of c0" in line


@pytest.mark.parametrize(
    "card", [None, {}, {"privacy": {"epsilon": 1.0}}, {"epsilon_max": 1.0, "releases": {}}]
)
def test_a_folder_without_a_release_is_named(params, found, card):
    (line,) = found(EXPORT, card)
    assert EXPORT in line and "release" in line


def test_a_release_that_was_opened_but_never_made_does_not_count(params, found):
    card = entered(params, "c0", release())
    releases.ledger_of(params, "digits", "c0").open(release(seed=1))
    assert len(releases.closed_by_public_name(params, "digits", "c0")) == 1
    assert found(EXPORT, card) == []


@pytest.mark.parametrize(
    "change", [{"epsilon": 1.0}, {"delta": 1e-6}, {"guarantee": "strong"}, {"more": 1}]
)
def test_a_card_that_states_another_privacy_is_named(params, found, change):
    card = entered(params, "c0", release())
    (line,) = found(EXPORT, {**card, "privacy": {**card["privacy"], **change}})
    assert line.startswith(f"{EXPORT} states another privacy than the ledger of c0.")


def test_an_initial_model_answers_for_all_its_clients(params, found):
    named = {
        client: entered(params, client, release(e))["release"]
        for client, e in (("c0", 10.0), ("c1", 3.0))
    }
    told = {"epsilon_max": 10.0, "guarantee": "formal", "releases": named}
    assert found(INITIAL, told) == []
    assert "states another privacy" in found(INITIAL, {**told, "epsilon_max": 3.0})[0]
    assert "ledger of c1" in found(INITIAL, {**told, "releases": {**named, "c1": named["c0"]}})[0]


def test_an_initial_model_made_from_one_set_without_guarantee_has_none(params, found):
    named = {
        client: entered(params, client, release(e))["release"]
        for client, e in (("c0", 10.0), ("c1", math.inf))
    }
    assert found(INITIAL, {"epsilon_max": "inf", "guarantee": "none", "releases": named}) == []
    assert found(INITIAL, {"epsilon_max": "inf", "guarantee": "formal", "releases": named})


def test_a_tampered_ledger_is_one_sentence(params, found):
    card = entered(params, "c0", release())
    path = releases.ledger_of(params, "digits", "c0").path
    path.write_text(path.read_text().replace('"epsilon":10.0', '"epsilon":1.0'))
    (line,) = found(EXPORT, card)
    assert "the chain is broken" in line


def test_a_public_name_follows_the_secret_and_the_place_and_nothing_of_the_records(
    params, tmp_path
):
    first = entered(params, "c0", release(data="d"))["release"]
    (tmp_path / "ledgers/digits/c0.jsonl").unlink()
    (tmp_path / "ledgers/digits/c0.head").unlink()
    assert entered(params, "c0", release(data="other", epsilon=1.0))["release"] == first
    assert entered(params, "c0", release(data="third"))["release"] != first
    assert entered(params, "c1", release(data="d"))["release"] != first  # a secret of its own
