"""Tests how the benchmark of private heads deals records, runs a cell and keeps its runs."""

import numpy as np
import pytest

from benchmarks import common, dp_head
from pipelines import config
from pipelines.config.data import Encoder
from pipelines.datasets.labelled_images import Images
from pipelines.training import fixed_features, linear_head

KEY = {"dataset": "digits", "records": 60, "epsilon": 8.0, "clients": 1, "network": "scatter"}
KEY["copies"] = 1
ENCODER = Encoder(network="efficientnet_lite0", side=32)


def images(count: int) -> Images:
    rng = np.random.default_rng(count)
    pixels = rng.integers(0, 256, (count, 8, 8, 1)).astype(np.uint8)
    return Images(pixels, rng.integers(0, 10, count), np.arange(count))


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    monkeypatch.setattr(linear_head, "FEATURES", tmp_path / "features")


@pytest.mark.parametrize("count", [dp_head.SKEWED, dp_head.SORTED])
def test_each_record_is_dealt_once(count):
    clients = dp_head.dealt(images(2000), count, np.random.default_rng(0))
    assert len(clients) == count
    owned = np.concatenate([records.ids for records in clients.values()])
    assert sorted(owned) == list(range(2000))


def test_sorted_pieces_leave_a_client_few_classes():
    clients = dp_head.dealt(images(2000), dp_head.SORTED, np.random.default_rng(0))
    assert all(len(set(records.labels)) <= 4 for records in clients.values())


# features of an encoder take a minute
@pytest.mark.parametrize("network", ["scatter", pytest.param("encoder", marks=pytest.mark.slow)])
@pytest.mark.parametrize("clients", [1, dp_head.SKEWED])
def test_a_run_has_its_accuracy_and_a_clients_seconds(clients, network):
    params = config.load()
    profile = params.profiles["digits"].model_copy(update={"encoder": ENCODER})
    params = params.model_copy(update={"profiles": {**params.profiles, "digits": profile}})
    params = dp_head.on_network(params, "digits", network)
    fixed = fixed_features.of(profile, network)
    data = dp_head.Data(params, "digits", images(200), images(30), fixed)
    key = {**KEY, "clients": clients, "network": network}
    run = dp_head.measured(data, key, seed=3)
    assert run["seed"] == 3 and 0 <= run["accuracy"] <= 1 and run["cpu_seconds"] > 0
    settings = dp_head.settings_of(params, key)
    assert settings["schedules"] == getattr(params.heads, network).model_dump()["schedules"]
    assert ("encoder" in settings) == (network == "encoder")


def test_runs_of_other_settings_go_and_a_seed_is_kept_once():
    def stored() -> list[dict]:
        return common.kept(dp_head.NAME)

    for seed, accuracy in ((0, 0.5), (1, 0.7), (1, 0.9)):
        dp_head.add(KEY, {"steps": 1}, {"seed": seed, "accuracy": accuracy, "cpu_seconds": 1.0})
    (line,) = stored()
    assert (line["accuracy"], line["seeds"]) == (pytest.approx(0.7), 2)
    dp_head.add(KEY, {"steps": 2}, {"seed": 5, "accuracy": 0.2, "cpu_seconds": 1.0})
    (line,) = stored()
    assert (line["accuracy"], line["seeds"]) == (0.2, 1)
