"""Tests what the submitter's terminal says while the clients come."""

from types import SimpleNamespace

import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from pipelines.errors import UserError
from pipelines.federation.network.flare import jobs, submit

CLIENTS = ["c0", "c1", "c2"]


class Session:
    """Answers each look with the next of some lists of connected clients, then with the last."""

    def __init__(self, *looks: list[str]):
        self.looks = list(looks)

    def get_system_info(self):
        names = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return SimpleNamespace(client_info=[SimpleNamespace(name=name) for name in names])


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(jobs, "POLL", 0)


def test_each_client_is_told_of_once_when_it_comes(capsys):
    session = Session([], ["c1"], ["c1"], ["c1", "another"], ["c2", "c1", "c0"])
    submit._wait_for_clients(session, CLIENTS, 60, lambda: None)
    assert capsys.readouterr().out.splitlines() == [
        "  The server answers. Waiting for 3 clients: c0, c1, c2.",
        "  c1 is there (1 of 3).",
        "  c0 is there (2 of 3).",
        "  c2 is there (3 of 3).",
    ]


def test_clients_that_do_not_come_are_named_in_the_end(capsys):
    with pytest.raises(UserError, match=r"After 0 s these clients have not come: c0, c2\."):
        submit._wait_for_clients(Session(["c1"]), CLIENTS, 0, lambda: None)
    assert "  c1 is there (1 of 3)." in capsys.readouterr().out
