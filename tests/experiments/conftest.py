"""Makes runs by hand as the store holds them, and loads the project's parameters."""

import pytest
from kept_runs import method, run
from project import ROOT

from experiments import store
from experiments.plans import Request
from pipelines import config


@pytest.fixture(scope="session")
def params() -> config.Params:
    return config.load(ROOT / "params.yaml")


@pytest.fixture
def asked(params) -> Request:
    return Request(
        ("mnist", "fashion_mnist", "cifar10"), (0, 1), tuple(params.clients), "../archives"
    )


@pytest.fixture
def results(monkeypatch, tmp_path):
    monkeypatch.setattr(store, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture
def of_table2() -> list[dict]:
    """Returns runs of two seeds and two clients.

    PPPFL gains 0.1, 0.2, 0.1 and 0.4 over local, FedAvg nothing.
    """
    return [
        _run(0, local=(0.8, 0.6), gains=(0.1, 0.2), untrained=(0.5, 0.6)),
        _run(1, local=(0.7, 0.5), gains=(0.1, 0.4), untrained=(0.7, 0.4)),
    ]


def _run(seed, local, gains, untrained) -> dict:
    bound = {"epsilon_max": "inf", "guarantee": "none", "upper_bound": True}
    methods = {
        "pppfl/dp_moments": method(local[0] + gains[0], local[1] + gains[1]),
        "fedavg/dp_moments": method(*local, before=0.4, seconds=None),
        "own_synthetic/dp_moments": method(*local, before=0.25),
        "local": method(*local, epsilon_max=0.0),
        "random_init": method(*untrained, epsilon_max=0.0),
        "fedavg_real": method(*local, before=0.95, **bound),
    }
    return run(seed, methods)
