import numpy as np
import pytest

from pipelines.reporting import client_gains


def test_a_clients_gain_is_of_its_own_images_alone():
    own = np.arange(100) < 90
    run = {
        "correct": {
            "m": {"a": own, "b": np.ones(10, bool)},
            "local": {"a": np.arange(100) < 70, "b": np.ones(10, bool)},
        }
    }
    found = client_gains.at_home("m", run, 7)
    assert found["a"]["value"] == pytest.approx(0.2) and found["a"]["low"] > 0.1
    assert found["a"]["differing"] == 20
    assert (found["b"]["low"], found["b"]["differing"]) == (None, 0)
    run["correct"]["m"]["b"] = run["correct"]["local"]["b"] = np.arange(10) < 3
    assert client_gains.at_home("m", run, 7)["a"] == found["a"]
    assert client_gains.at_home("local", run, 7) == {}


@pytest.mark.parametrize("count", [5, 6])
def test_elsewhere_there_is_an_interval_from_six_clients_on(count):
    clients = [f"c{number}" for number in range(count)]
    ours = {client: 0.5 + number / 100 for number, client in enumerate(clients)}
    methods = {
        "m": {"clients_elsewhere": ours},
        "local": {"clients_elsewhere": dict.fromkeys(clients, 0.4)},
    }
    found = client_gains.elsewhere("m", methods, 7)
    assert found["value"] == pytest.approx(0.1 + (count - 1) / 200)
    assert (found["low"] is None) == (count < 6)
    assert client_gains.elsewhere("local", methods, 7) is None
