"""Checks, on the server of a network, that a message bears its sender's own name.

NVFlare takes the origin of a message from the message. Its server compares the origin with the
sender's token, but only while that token is registered. The token of the server itself is compared
with nothing, and each client has it, because every message of the server carries it. So a client
could pose as the server to another client, which answers the server alone.

Here the certificate of the connection decides. A client's name in the network is the one that its
certificate states. The processes of the server's own jobs connect to a listener of this machine
alone, which asks for no certificate.
"""

import logging
from collections.abc import Callable

from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, MessagePropKey, ReturnCode
from nvflare.fuel.f3.cellnet.utils import make_reply
from nvflare.fuel.f3.message import Message
from nvflare.fuel.utils.admin_name_utils import is_valid_admin_client_name
from nvflare.private.defs import AUTH_CLIENT_NAME_FOR_SJ
from nvflare.private.fed.server.fed_server import FederatedServer

from pipelines.federation.network.flare.common_hardening import close
from pipelines.federation.network.flare.names import ADMIN, SERVERS_CELL

log = logging.getLogger("fedlens.server")
REFUSED = "a message bears the name of its sender"


def guard(put: Callable[[object, str, object], None] = setattr) -> None:
    """Guards this process, a server's own or one of its jobs', before it has a cell.

    The server's own process forwards messages to clients and jobs, so it checks for all of them.

    Args:
        put: Sets an attribute, as `setattr` does.
    """
    put(
        FederatedServer,
        "_validate_auth_headers",
        by_certificate(FederatedServer._validate_auth_headers),
    )
    put(FederatedServer, "_resolve_client_fqcn_for_auth", cell_of_token)
    close(put)


def by_certificate(check: Callable) -> Callable:
    """Returns NVFlare's filter of incoming messages, after the check of `bears_own_name`."""

    def checked(self, message: Message) -> Message | None:
        if not bears_own_name(message):
            origin = message.get_header(MessageHeaderKey.ORIGIN)
            owner = message.get_prop(MessagePropKey.COMMON_NAME)
            log.error(
                "refused: a message of origin %.200r over the connection of %.200r", origin, owner
            )
            return make_reply(ReturnCode.UNAUTHENTICATED, REFUSED)
        return check(self, message)

    return checked


def bears_own_name(message: Message) -> bool:
    """Returns whether a message's origin belongs to the certificate of its connection."""
    origin = message.get_header(MessageHeaderKey.ORIGIN)
    owner = message.get_prop(MessagePropKey.COMMON_NAME)
    if not isinstance(origin, str):
        return False
    sender = origin.partition(".")[0]
    if owner is None:
        # the only listener without certificates is on this machine, for the server's own jobs
        return sender == SERVERS_CELL
    if owner == ADMIN:
        return is_valid_admin_client_name(origin)
    return sender == owner != SERVERS_CELL


def cell_of_token(server: FederatedServer, name: str, token: str) -> str | None:
    """Returns the cell that a signed token speaks for, whether the token is registered or not.

    A client's token speaks for the client that it was made for. So a token that is no longer
    registered serves that client alone, whose heartbeat then registers it again.

    Args:
        server: NVFlare's server, whose method this replaces.
        name: The member's name that the token was signed with.
        token: The token, which is the job's id for a job of the server.

    Returns:
        The full name of the cell; None for the submitter.
    """
    if name == ADMIN:
        # the submitter's cell has a new name in each session, and is bound to its certificate
        return None
    return f"{SERVERS_CELL}.{token}" if name == AUTH_CLIENT_NAME_FOR_SJ else name
