"""Losing clients, without a network: proxies that answer, refuse, die or lie."""

import threading
import time

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from nvflare.apis.signal import Signal
from nvflare.collab.api.exceptions import CollabCallError

from pipelines.blocks.federation import Federation
from pipelines.federation.engines.flare import carrier
from pipelines.federation.engines.flare.carrier import Carrier, Lost
from pipelines.federation.messages import Payload

ROUND = Payload({"w": np.ones(2, np.float32)}, {"round": 4})
ANSWER = {"arrays": {"w": np.zeros(2, np.float32)}, "scalars": {"images": 3}}


class Proxy:
    """answer: what `update` returns; an exception is raised, an Event is waited for."""

    def __init__(self, answer=ANSWER, alive: bool = True):
        self.answer, self.is_alive, self.backend = answer, alive, self
        self.abort_signal = Signal()

    def __call__(self, timeout: float) -> "Proxy":
        return self

    def update(self, arrays: dict, scalars: dict):
        if isinstance(self.answer, threading.Event):
            self.answer.wait(20)
            return ANSWER
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def alive(self) -> dict:
        if not self.is_alive:
            raise CollabCallError("c1", "alive", TimeoutError("timed out"))
        return {}


def carried(on_loss: str = "fail", **clients: Proxy) -> Carrier:
    times = {"start_timeout": 5.0, "reply_timeout": 60.0, "ping_timeout": 1.0}
    return Carrier(clients, Federation(engine="nvflare", mode="local", on_loss=on_loss, **times))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(carrier, "PING_EVERY", 0.05)


def test_replies_are_sorted_by_client():
    replies = carried(c2=Proxy(), c0=Proxy(), c1=Proxy()).call(ROUND)
    assert [reply.client for reply in replies] == ["c0", "c1", "c2"]


def test_a_client_whose_budget_is_gone_gives_no_reply_and_is_not_lost():
    asked = carried(c0=Proxy(), c1=Proxy({}))
    assert [reply.client for reply in asked.call(ROUND)] == ["c0"] and not asked.lost


BAD = {
    "refuses": (Proxy({"refused": "round 4 does not follow"}), "it refused: round 4 does not follow"),
    "fails": (Proxy(CollabCallError("c1", "update", TimeoutError("timed out"))), "it does not answer"),
    "dies": (Proxy(threading.Event(), alive=False), "it does not answer"),
    "says nothing": (Proxy(None), "it refused: its answer is none"),
    "sends other shapes": (Proxy({**ANSWER, "arrays": {"w": np.zeros(3, np.float32)}}), "not of the protocol"),
    "sends nan": (Proxy({**ANSWER, "arrays": {"w": np.full(2, np.nan, np.float32)}}), "not of the protocol"),
    "tells more": (Proxy({**ANSWER, "scalars": {"records": 9}}), "not of the protocol"),
    "sends half": (Proxy({"arrays": ANSWER["arrays"]}), "not of the protocol"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_loss_fails_the_run(kind):
    proxy, why = BAD[kind]
    began = time.monotonic()
    with pytest.raises(Lost, match=f"c1 was lost \\(round 4\\): .*{why}"):
        carried(c0=Proxy(), c1=proxy).call(ROUND)
    assert time.monotonic() - began < 5  # not when the call's own time is over


@pytest.mark.parametrize("kind", BAD)
def test_or_the_run_goes_on_without_it_where_that_is_asked_for(kind):
    proxy, why = BAD[kind]
    asked = carried("skip", c0=Proxy(), c1=proxy, c2=Proxy())
    for _ in range(2):
        assert [reply.client for reply in asked.call(ROUND)] == ["c0", "c2"]
    assert list(asked.lost) == ["c1"] and why in asked.lost["c1"] and asked.lost["c1"].startswith("round 4: ")
    assert proxy.abort_signal.triggered and not asked.clients["c0"].abort_signal.triggered


def test_a_slow_client_that_lives_is_waited_for():
    done = threading.Event()
    threading.Timer(0.5, done.set).start()
    assert len(carried(c0=Proxy(), c1=Proxy(done)).call(ROUND)) == 2


def test_nobody_left_fails_the_run_in_any_case():
    with pytest.raises(Lost, match="no client is left"):
        carried("skip", c0=Proxy({"refused": "no"})).call(ROUND)


def test_the_jobs_own_abort_reaches_every_call():
    proxy = Proxy()
    common = proxy.abort_signal
    carried(c0=proxy)
    common.trigger("abort")
    assert proxy.abort_signal.triggered
