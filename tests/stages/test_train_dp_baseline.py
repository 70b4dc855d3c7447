"""A joint noisy run is known by everyone's records and budgets, the public images and the engine.

A reply depends on all of them by the model that was broadcast. Where one changes, every client's release is another
one, and the ledger must not hand the old one back.
"""

from dataclasses import replace

import numpy as np
import pytest
from project import ROOT

from pipelines import config
from pipelines.config.data import Encoder
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.federation.noisy_run import NoisyRun
from pipelines.privacy.statement import OF_NETWORK

ALGORITHM = "dpsgd"


def images(seed: int) -> Images:
    rng = np.random.default_rng(seed)
    return Images(
        rng.integers(0, 256, (12, 8, 8, 1)).astype(np.uint8), np.arange(12) % 10, np.arange(12)
    )


@pytest.fixture(scope="module")
def params():
    return config.load(ROOT / "params.yaml")


@pytest.fixture
def fingerprints(params):
    """Returns a factory of {client: its fingerprint} of a run over these records."""

    def made(params, data: dict[str, Images], public: Images) -> dict[str, str]:
        run = NoisyRun(params, "digits", ALGORITHM)
        entries = run.entries(run.client_task(data), public)
        return {client: entry.fingerprint for client, entry in entries.items()}

    return made


def test_each_fact_of_a_joint_run_makes_every_client_release_anew(params, fingerprints):
    data, public = {"c0": images(0), "c1": images(1)}, images(9)
    before = fingerprints(params, data, public)
    assert fingerprints(params, dict(data), public) == before

    other_record = replace(data["c1"], images=data["c1"].images.copy())
    other_record.images[3, 0, 0, 0] ^= 1
    budget = {
        **params.clients,
        "c1": params.clients["c1"].model_copy(update={"epsilon": 3.0000001}),
    }
    network = params.federation.model_copy(update={"engine": "nvflare"})
    changes = {
        "a pixel of another client's record": (params, {**data, "c1": other_record}, public),
        "another client's budget": (params.model_copy(update={"clients": budget}), data, public),
        "the public images": (params, data, images(10)),
        "the engine": (params.model_copy(update={"federation": network}), data, public),
    }
    for fact, arguments in changes.items():
        after = fingerprints(*arguments)
        assert all(after[client] != before[client] for client in data), fact


def test_a_run_on_an_encoder_does_not_cover_its_pretraining(params):
    pretraining = OF_NETWORK["encoder"][0]
    profile = params.profiles["digits"]
    on_encoder = {
        "encoder": Encoder(network="efficientnet_lite0", side=32),
        "training": {**profile.training, "dpsgd_head": {"network": "encoder"}},
    }
    for changes, silent in (({}, True), (on_encoder, False)):
        profiles = {**params.profiles, "digits": profile.model_copy(update=changes)}
        run = NoisyRun(params.model_copy(update={"profiles": profiles}), "digits", "dpsgd_head")
        entries = run.entries(run.client_task({"c0": images(0)}), images(9), details=False)
        assert (pretraining not in entries["c0"].statement["not_covered"]) == silent


@pytest.mark.parametrize("change", [{"epsilon": 1e-5}, {"delta": 1e-15}], ids=str)
def test_a_budget_without_a_lattice_is_refused_before_any_ledger_is_charged(
    params, change, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDLENS_LEDGERS", str(tmp_path / "ledgers"))
    small = params.clients["c1"].model_copy(update=change)
    params = params.model_copy(update={"clients": {**params.clients, "c1": small}})
    run = NoisyRun(params, "digits", "dpsgd_head")
    with pytest.raises(UserError, match="64 bits have"):
        run.release({"c0": images(0), "c1": images(1)})
    assert not (tmp_path / "ledgers").exists()
