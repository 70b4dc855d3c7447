"""Tests whose name a message may bear, without a network. test_attacks poses over one."""

import logging
from types import SimpleNamespace

import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, MessagePropKey, ReturnCode
from nvflare.fuel.f3.message import Message
from nvflare.private.defs import CellChannel, CellChannelTopic, CellMessageHeaderKeys
from nvflare.private.fed.authenticator import validate_auth_headers
from nvflare.private.fed.server.fed_server import FederatedServer

from pipelines.federation.network.flare import names, origins

ADMINS_CELL = "_admin_7e2a2071-eb9f-4278-ac40-583ddf718a02"
SIGNED = {
    ("c1", "T1"),
    ("server", "server"),
    ("server_job", "J1"),
}  # what a client can show after a round


class Verifier:
    def verify(self, name: str, token: str, signature: str) -> bool:
        return signature == "signed" and name + token in {one + other for one, other in SIGNED}


def message(
    origin, certificate: str | None, name: str = "c1", token: str = "T1", **headers
) -> Message:
    made = Message()
    made.add_headers(
        {
            CellMessageHeaderKeys.CLIENT_NAME: name,
            CellMessageHeaderKeys.TOKEN: token,
            CellMessageHeaderKeys.TOKEN_SIGNATURE: "signed",
            MessageHeaderKey.ORIGIN: origin,
            MessageHeaderKey.DESTINATION: "c0",
            MessageHeaderKey.CHANNEL: CellChannel.CLIENT_MAIN,
            MessageHeaderKey.TOPIC: "x",
            **headers,
        }
    )
    if certificate:
        made.set_prop(MessagePropKey.COMMON_NAME, certificate)
    return made


def passes(given: Message, registered: dict, guarded: bool) -> bool:
    """Returns whether the server lets a message by, where `registered` holds the tokens of clients."""
    clients = {
        token: SimpleNamespace(name=name, get_fqcn=lambda name=name: name)
        for token, name in registered.items()
    }
    server = SimpleNamespace(client_manager=SimpleNamespace(clients=clients))
    resolve = origins.cell_of_token if guarded else FederatedServer._resolve_client_fqcn_for_auth

    def of_token(name, token):
        return resolve(server, name, token)

    def check(self, given):
        return validate_auth_headers(given, Verifier(), logging.getLogger(), of_token, "server")

    return (origins.by_certificate(check) if guarded else check)(None, given) is None


POSING = {
    "after quit": (message("server", "c1"), {}),
    "in a job's name": (message("server.J1", "c1"), {}),
    "as another client": (message("c0.J1", "c1"), {}),
    "with the server's own token": (message("server", "c1", "server", "server"), {"T1": "c1"}),
    "with the token of the server's job": (
        message("server.J1", "c1", "server_job", "J1"),
        {"T1": "c1"},
    ),
    "by another split of name and token": (message("server", "c1", "c", "1T1"), {"T1": "c1"}),
}


@pytest.mark.parametrize("how", POSING)
def test_no_client_bears_anothers_name(how):
    given, registered = POSING[how]
    assert passes(given, registered, guarded=False)  # as NVFlare has it
    assert not passes(given, registered, guarded=True)


@pytest.mark.parametrize("registered", [{"T1": "c1"}, {}], ids=["registered", "after quit"])
@pytest.mark.parametrize("origin", ["c1", "c1.J1"])
def test_a_client_bears_its_own(origin, registered):
    """This also holds with a token that is not registered, because its heartbeat registers it
    again.
    """
    assert passes(message(origin, "c1"), registered, guarded=True)


def test_the_certificate_alone_would_do_and_so_would_the_token():
    assert not origins.bears_own_name(message("server", "c1"))
    assert origins.cell_of_token(None, "c1", "T1") == "c1"


@pytest.mark.parametrize(
    ("origin", "certificate", "its_own"),
    [
        ("server.J1", None, True),
        ("server", None, True),
        ("c1", None, False),
        ("c1", "N/A", False),
        (ADMINS_CELL, names.ADMIN, True),
        ("server", names.ADMIN, False),
        ("c1", names.ADMIN, False),
        (ADMINS_CELL, "c1", False),
        ("server", "server", False),
        ("c1x", "c1", False),
        ("", "c1", False),
        (None, None, False),
    ],
)
def test_the_certificate_of_a_connection_says_who_sends(origin, certificate, its_own):
    assert origins.bears_own_name(message(origin, certificate)) == its_own


def test_what_nvflare_lets_by_unchecked_is_checked_too():
    """A client's registration needs no token, and neither does a farewell to the server."""
    for topic, channel in (
        ("register", CellChannel.SERVER_MAIN),
        (CellChannelTopic.Bye, CellChannel.CELLNET),
    ):
        headers = {
            MessageHeaderKey.TOPIC: topic,
            MessageHeaderKey.CHANNEL: channel,
            MessageHeaderKey.DESTINATION: "server",
        }
        assert passes(message("server", "c1", **headers), {}, guarded=False)
        assert not passes(message("server", "c1", **headers), {}, guarded=True)
        assert passes(message("c1", "c1", **headers), {}, guarded=True)


def test_a_refusal_is_one_line_of_the_log(caplog):
    passes(message("server\nERROR: c0 has failed\x1b[2J" + "x" * 10**4, "c1"), {}, guarded=True)
    (record,) = caplog.records
    said = record.getMessage()
    assert said.isprintable() and len(said) < 600


def test_the_guard_changes_what_a_servers_processes_do(monkeypatch):
    origins.guard(monkeypatch.setattr)
    assert FederatedServer._resolve_client_fqcn_for_auth is origins.cell_of_token
    assert (
        FederatedServer._validate_auth_headers(None, message("server", "c1")).get_header(
            MessageHeaderKey.RETURN_CODE
        )
        == ReturnCode.UNAUTHENTICATED
    )
    assert CoreCell._add_adhoc_connector(None, "c1", "tcp://192.0.2.1:1") is None
    asked = message("c1", "c1", **{MessageHeaderKey.CHANNEL: names.CELLS_SERVICE})
    assert (
        CoreCell._process_request(None, "c1", asked).get_header(MessageHeaderKey.RETURN_CODE)
        == "unauthenticated"
    )
