"""Tests losing clients, without a network: proxies that answer, refuse, die or lie."""

import math
import re
import threading
import time

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from nvflare.apis.signal import Signal
from nvflare.collab.api.exceptions import CollabCallError

from pipelines.config.federation import Federation
from pipelines.errors import UserError
from pipelines.federation.algorithms import fedavg, fednova, scaffold
from pipelines.federation.core import rounds
from pipelines.federation.core.control_variates import zeros
from pipelines.federation.core.messages import Payload, ServerState
from pipelines.federation.network.flare import engine
from pipelines.federation.network.flare.engine import Lost, NetworkEngine

ROUND = Payload({"w": np.ones(2, np.float32)}, {"round": 4})
ANSWER = {"arrays": {"w": np.zeros(2, np.float32)}, "scalars": {"images": 3}}


class Proxy:
    """Stands for a client. answer: what `update` returns.

    An exception is raised, and an Event is waited for.
    """

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


TOLD = {"images": (int, 3, 3)}


def carried(on_loss: str = "fail", **clients: Proxy) -> NetworkEngine:
    times = {"start_timeout": 5.0, "reply_timeout": 60.0, "ping_timeout": 1.0}
    return NetworkEngine(
        clients, Federation(engine="nvflare", mode="local", on_loss=on_loss, **times), TOLD
    )


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(engine, "PING_EVERY", 0.05)


def test_replies_are_sorted_by_client():
    replies = carried(c2=Proxy(), c0=Proxy(), c1=Proxy()).call(ROUND)
    assert [reply.client for reply in replies] == ["c0", "c1", "c2"]


def test_a_client_whose_budget_is_gone_gives_no_reply_and_is_not_lost():
    asked = carried(c0=Proxy(), c1=Proxy({}))
    assert [reply.client for reply in asked.call(ROUND)] == ["c0"] and not asked.lost


BAD = {
    "refuses": (
        Proxy({"refused": "round 4 does not follow"}),
        "it refused: round 4 does not follow",
    ),
    "fails": (
        Proxy(CollabCallError("c1", "update", TimeoutError("timed out"))),
        "it does not answer",
    ),
    "dies": (Proxy(threading.Event(), alive=False), "it does not answer"),
    "says nothing": (Proxy(None), "it refused: its answer is none"),
    "sends other shapes": (
        Proxy({**ANSWER, "arrays": {"w": np.zeros(3, np.float32)}}),
        "not of the protocol",
    ),
    "sends nan": (
        Proxy({**ANSWER, "arrays": {"w": np.full(2, np.nan, np.float32)}}),
        "not of the protocol",
    ),
    "tells more": (Proxy({**ANSWER, "scalars": {"records": 9}}), "not of the protocol"),
    "tells less": (
        Proxy({**ANSWER, "scalars": {}}),
        "not of the protocol: its answer lacks the numbers images",
    ),
    "tells no mapping": (Proxy({**ANSWER, "scalars": [3]}), "not of the protocol"),
    "weighs itself": (
        Proxy({**ANSWER, "scalars": {"images": 10**6}}),
        r"'images' .* int in \[3, 3\]",
    ),
    "weighs nothing at all": (
        Proxy({**ANSWER, "scalars": {"images": math.nan}}),
        r"'images' .* int in \[3, 3\]",
    ),
    "sends too large values": (
        Proxy({**ANSWER, "arrays": {"w": np.full(2, 2e6, np.float32)}}),
        "not of the protocol",
    ),
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
    assert (
        list(asked.lost) == ["c1"]
        and re.search(why, asked.lost["c1"])
        and asked.lost["c1"].startswith("round 4: ")
    )
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


class Trained(Proxy):
    """Is a client that answers each round with weights of one value, and says how many images and
    steps it had.
    """

    def __init__(self, value: float, **said):
        super().__init__()
        self.value, self.said = value, {"images": 3, "steps": 2, **said}

    def update(self, arrays: dict, scalars: dict):
        return {
            "arrays": {name: np.full_like(array, self.value) for name, array in arrays.items()},
            "scalars": self.said,
        }


STARTS = {
    fedavg: lambda weights: ServerState(weights),
    fednova: lambda weights: fednova.NovaState(weights, 0.0),
    scaffold: lambda weights: scaffold.ScaffoldServer(weights, zeros(weights), 3),
}
LIES = [{"images": lie} for lie in (math.nan, math.inf, -2, 0, 1e308, 10**30, 4, 3.0, True, "3")]
LIES += [{"steps": lie} for lie in (0, -1, math.nan, 1e-300, 10**6)]


@pytest.mark.parametrize("lie", LIES, ids=str)
@pytest.mark.parametrize("algorithm", STARTS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_no_client_weighs_itself_and_none_drives_out_the_others(algorithm, lie):
    asked = carried("skip", c0=Trained(1.0), c1=Trained(1e6, **lie), c2=Trained(1.0))
    asked.bounds = {"images": (int, 3, 3), "steps": (int, 2, 2)}
    start = STARTS[algorithm]({"w": np.zeros(2, np.float32)})
    found = rounds.run(start, algorithm.server_step, asked, rounds=3, name="x")
    assert list(asked.lost) == ["c1"] and repr(next(iter(lie))) in asked.lost["c1"]
    assert [row["clients"] for row in found.curves] == [2, 2, 2]
    assert all(np.array_equal(model["w"], [1.0, 1.0]) for model in found.models[1:])


def test_a_model_that_clients_would_refuse_is_not_sent():
    """They would be lost for it, though it is another's answers that made it."""
    asked = carried("skip", c0=Proxy(), c1=Proxy())
    with pytest.raises(UserError, match=r"Round 4 cannot begin, .* array 'w' has values"):
        asked.call(Payload({"w": np.full(2, 2e6, np.float32)}, {"round": 4}))
    assert not asked.lost


def test_what_a_client_says_is_one_line_of_the_log():
    asked = carried(
        "skip", c0=Proxy(), c1=Proxy({"refused": "no\r\nERROR: c0 was lost\x1b[2J" + "x" * 10**5})
    )
    asked.call(ROUND)
    assert asked.lost["c1"].isprintable() and len(asked.lost["c1"]) < 600
