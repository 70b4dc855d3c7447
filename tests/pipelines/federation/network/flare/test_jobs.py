"""Tests how a session is opened: not before somebody listens, and with patience then."""

import json
import socket
from pathlib import Path

import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from pipelines.errors import UserError
from pipelines.federation.network.flare import jobs, names


class Session:
    """Stands for an open session, and says whether it was closed."""

    def __init__(self):
        self.closed = False

    def close(self):
        self.closed = True


@pytest.fixture
def tried(monkeypatch) -> list[float]:
    """Returns the patience of every session that was tried. A third one opens."""
    patience = []

    def opened(user: str, kit: str, timeout: float) -> Session:
        patience.append(timeout)
        if len(patience) < 3:
            raise ConnectionError("cannot connect")
        return Session()

    monkeypatch.setattr(jobs, "new_secure_session", opened)
    monkeypatch.setattr(jobs, "POLL", 0)
    return patience


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def kit_for(folder: Path, port: int) -> Path:
    file = folder / names.ADMIN_FILE
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"admin": {"host": "127.0.0.1", "port": port}}))
    return folder


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_no_session_is_tried_where_nobody_listens(tmp_path, tried):
    looks = []
    refused = r"No server answers this kit within 0\.01 s \(.*refused\)"
    with (
        pytest.raises(UserError, match=refused),
        jobs.connected(kit_for(tmp_path, closed_port()), 0.01, lambda: looks.append(1)),
    ):
        raise AssertionError("there is no server")
    assert not tried and looks


def test_a_server_that_listens_is_given_time_and_tried_again(tmp_path, tried, listener):
    with jobs.connected(kit_for(tmp_path, listener), 60, lambda: None) as session:
        assert not session.closed
    assert session.closed and tried == [jobs.PATIENCE] * 3


def test_a_server_that_never_opens_a_session_ends_the_wait(tmp_path, tried, listener):
    kit = kit_for(tmp_path, listener)
    with (
        pytest.raises(UserError, match=r"within 0 s \(cannot connect\)"),
        jobs.connected(kit, 0, lambda: None),
    ):
        raise AssertionError("no session was opened")


def test_another_folder_is_no_kit(tmp_path, tried):
    with (
        pytest.raises(UserError, match="is no start-up kit of a submitter: it lacks startup/"),
        jobs.connected(tmp_path, 60, lambda: None),
    ):
        raise AssertionError("there is no kit")
    assert not tried
