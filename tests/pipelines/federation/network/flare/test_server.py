"""The server's job checks answers around the rounds; without a network."""

import json
import math

import numpy as np
import pytest
from project import ROOT

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from nvflare.apis.signal import Signal

from pipelines import config
from pipelines.federation.network.flare import client, server
from pipelines.federation.network.flare.engine import Lost, NetworkEngine
from pipelines.federation.run_spec import RunSpec
from pipelines.joint import client as joint_client
from pipelines.joint import server as joint_server

RUN = RunSpec("digits", "sda_fl", "dp_moments")
CARD = {"privacy": {"epsilon": 3.0, "guarantee": "formal"}, "release": "abc"}


class Proxy:
    """Answers each call with the same."""

    def __init__(self, answer):
        self.backend, self.abort_signal = self, Signal()
        self.end = lambda: answer
        self.exported = lambda names: answer

    def __call__(self, timeout: float) -> "Proxy":
        return self


def carrier(params: config.Params, on_loss: str, *answers) -> NetworkEngine:
    settings = params.federation.model_copy(update={"on_loss": on_loss})
    return NetworkEngine(
        {f"c{number}": Proxy(answer) for number, answer in enumerate(answers)}, settings, {}
    )


@pytest.fixture(scope="module")
def params() -> config.Params:
    return config.load(ROOT / "params.yaml")


def of(params: config.Params, dtype=np.uint8) -> dict:
    profile = params.profiles["digits"]
    images = np.zeros((profile.images, *profile.shape), dtype)
    labels = np.zeros(profile.images, np.int64)
    return {"images": images, "labels": labels, "card": json.dumps(CARD)}


@pytest.mark.parametrize("wrong", [{}, {"images": 3, "labels": 4}, "other kind"])
def test_a_set_that_is_none_goes_to_nobody(params, wrong):
    """The others would refuse the pool, and be lost for it."""
    wrong = of(params, np.float32) if wrong == "other kind" else wrong
    asked = carrier(params, "skip", of(params), wrong)
    assert list(server._pool(params, RUN, asked)) == ["c0"]
    assert list(asked.lost) == ["c1"] and "its set must be uint8 images" in asked.lost["c1"]
    with pytest.raises(Lost, match=r"c1 was lost \(exported\)"):
        server._pool(params, RUN, carrier(params, "fail", of(params), wrong))


SPENT = {"steps": 3, "epsilon_spent": 1.5, "epsilon_by_pld": 1.4}


@pytest.mark.parametrize(
    "wrong", [{**SPENT, "epsilon_spent": math.nan}, {"records": 9}, [1], np.ones(3), "all"]
)
def test_figures_that_are_none_are_not_told_and_the_others_are(params, wrong, caplog):
    asked = carrier(params, "fail", {"scalars": wrong}, {"scalars": SPENT}, {"scalars": {}}, {})
    assert server._spent(asked) == {"c1": SPENT}
    assert "of c0: " in caplog.text


def test_a_server_says_its_phase_and_how_many_rounds_there_are(params, monkeypatch):
    monkeypatch.setenv("FEDLENS_HOME", str(ROOT))
    monkeypatch.chdir(ROOT)
    leader = server.Server()
    assert leader.progress("progress", None) == {"phase": ""}
    leader.engine = carrier(params, "skip", {}, {})
    for phase, said in (
        ("exported", "the clients hand in their sets"),
        (server.ALONE, "the server trains on the sets"),
        ("round 7", "round 7 of 30"),
        ("another", "another"),
    ):
        leader.engine.phase = phase
        leader.engine.rounds = 30
        assert leader.progress("progress", None) == {"phase": said}


@pytest.mark.parametrize(
    ("leader", "client"),
    [(server.Server, client.Client), (joint_server.Server, joint_client.Client)],
)
def test_each_phase_is_a_call_that_clients_answer(leader, client):
    published = {name for name in dir(client) if not name.startswith("_")}
    assert set(leader.PHASES) - {server.ALONE} <= published
    assert {"describe", "begin"} <= set(leader.PHASES)
