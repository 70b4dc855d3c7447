"""Hand-made runs as the store keeps them, and the project's parameters."""

import pytest
from project import ROOT

from experiments import store
from experiments.plans import Asked
from pipelines import config


@pytest.fixture(scope="session")
def params() -> config.Params:
    return config.load(ROOT / "params.yaml")


@pytest.fixture
def asked(params) -> Asked:
    return Asked(("mnist", "fashion_mnist", "cifar10"), (0, 1), tuple(params.clients), "../archives")


@pytest.fixture
def results(monkeypatch, tmp_path):
    monkeypatch.setattr(store, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


def method(*accuracies: float, before: float = 0.3, **other) -> dict:
    """A method's entry of a run with clients c0, c1, ...; macro-F1 is a tenth below the accuracy."""
    clients = {
        f"c{number}": {
            "accuracy": accuracy,
            "macro_f1": accuracy - 0.1,
            "accuracy_before": before,
            "macro_f1_before": before - 0.1,
            "global_before": 0.2,
        }
        for number, accuracy in enumerate(accuracies)
    }
    entry = {"selected_mean_accuracy": 0.8, "bmta": 0.9, "bmt_f1": 0.85, "epsilon_max": 10.0, "guarantee": "formal"}
    entry |= {"rounds": 30, "bytes_up": 1000, "bytes_down": 1000, "seconds": 5.0, "seconds_at_home": 7.0}
    return {**entry, "upper_bound": False, **other, "clients": clients}


def run(seed: int, methods: dict, *, dataset: str = "mnist", variant: str = "", **other) -> dict:
    return {"dataset": dataset, "seed": seed, "variant": variant, "settings": {}, "methods": methods, **other}


@pytest.fixture
def of_table2() -> list[dict]:
    """Two seeds, two clients. PPPFL gains 0.1, 0.2, 0.1 and 0.4 over local, FedAvg nothing."""
    home, bound = {"epsilon_max": 0.0}, {"epsilon_max": "inf", "guarantee": "none", "upper_bound": True}
    gains, local = {0: (0.1, 0.2), 1: (0.1, 0.4)}, {0: (0.8, 0.6), 1: (0.7, 0.5)}
    return [
        run(
            seed,
            {
                "pppfl/dp_moments": method(*(a + gain for a, gain in zip(alone, gains[seed]))),
                "fedavg/dp_moments": method(*alone, before=0.4, seconds=None),
                "own_synthetic/dp_moments": method(*alone, before=0.25),
                "local": method(*alone, **home),
                "fedavg_real": method(*alone, before=0.95, **bound),
            },
        )
        for seed, alone in local.items()
    ]
