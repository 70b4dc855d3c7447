"""Tests what a client hands in before the rounds; without a network."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from project import ROOT

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from pipelines import config
from pipelines.config.training import BASELINES
from pipelines.datasets import exports
from pipelines.datasets.labelled_images import synthetic
from pipelines.federation.network.flare import client
from pipelines.federation.network.flare.client import Client
from pipelines.federation.network.flare.names import HOME, SERVERS_CELL

SET = synthetic(np.zeros((3, 2, 2, 1)), np.arange(3))
CARD = {"privacy": {"epsilon": 1.0, "guarantee": "formal"}, "release": "abc"}


@pytest.fixture
def ask(monkeypatch):
    """Returns a function that asks a client for its set, by the server of its job or another."""
    monkeypatch.setenv(HOME, str(ROOT))
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(client, "exported", lambda run, name: {name: SET})
    monkeypatch.setattr(exports, "card", lambda *names: CARD)
    loaded = config.load()
    update = {"algorithms": list(BASELINES)}
    shipped = loaded.model_copy(update={"baselines": loaded.baselines.model_copy(update=update)})

    def asked(method: str, caller: str = SERVERS_CELL, gather_sets: bool = False, **meta) -> dict:
        changed = {
            "meta": shipped.meta.model_copy(update=meta),
            "federation": shipped.federation.model_copy(update={"gather_sets": gather_sets}),
        }
        params = shipped.model_copy(update=changed)
        monkeypatch.setattr(client.config, "load", lambda: params)
        monkeypatch.setattr(client, "collab", SimpleNamespace(caller=caller, site_name="c0"))
        names = {"dataset": "digits", "method": method, "generator": "dp_moments"}
        return Client().exported(names)

    return asked


@pytest.mark.parametrize(
    ("method", "meta"),
    [
        ("pppfl", {}),
        ("pppfl", {"where": "clients"}),  # for the warm start
        ("pppfl", {"warm_start": None}),  # for the rounds
        ("pooled", {}),
        ("sda_fl", {}),
    ],
)
def test_a_set_goes_to_the_server_with_its_card_where_the_clients_own_settings_say_so(
    ask, method, meta
):
    answer = ask(method, **meta)
    assert answer["images"] is SET.images and answer["labels"] is SET.labels
    assert json.loads(answer["card"]) == CARD


@pytest.mark.parametrize(
    ("method", "meta"),
    [("pppfl", {"where": "clients", "warm_start": None}), ("fedavg", {}), ("pppfl_paper", {})],
)
def test_and_nowhere_else(ask, method, meta):
    assert ask(method, **meta) == {"refused": "in this run no set leaves its client"}


@pytest.mark.parametrize("method", ["fedavg", "scaffold", "pppfl_paper"])
def test_a_set_that_the_training_leaves_at_home_goes_where_the_clients_own_file_says_so(
    ask, method
):
    answer = ask(method, gather_sets=True)
    assert answer["images"] is SET.images and json.loads(answer["card"]) == CARD
    assert "refused" in ask(method, gather_sets=False)


def test_no_set_goes_in_a_run_on_private_records(ask):
    answer = ask("dpsgd", gather_sets=True)
    assert "refused" in answer and "images" not in answer


def test_nobody_but_the_jobs_server_gets_it(ask):
    answer = ask("pppfl", caller="c1")
    assert answer == {"refused": "only the server of this job is answered"}
