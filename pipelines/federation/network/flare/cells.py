"""Closes what NVFlare's cells offer to others beside their messages: at clients and at the server alike."""

import logging
from collections.abc import Callable

from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, ReturnCode
from nvflare.fuel.f3.cellnet.utils import make_reply
from nvflare.fuel.f3.message import Message

from pipelines.federation.network.flare.logs import as_text
from pipelines.federation.network.flare.names import CELLS_SERVICE

REFUSED = "a message asks for nothing of the network's own"


def close(put: Callable[[object, str, object], None]) -> None:
    """Changes this process before it has a cell.

    It serves nobody the state of its cell, connects to no address that a message names, and logs others' text as text.

    put: sets an attribute, as `setattr` does.
    """
    put(CoreCell, "_process_request", without_cells_service(CoreCell._process_request))
    put(CoreCell, "_add_adhoc_connector", lambda cell, to_cell, url: None)
    put(logging.LogRecord, "getMessage", as_text(logging.LogRecord.getMessage))


def without_cells_service(process: Callable) -> Callable:
    """Returns a cell's handling of requests, without its service to others: its peers, its memory, its end."""

    def guarded(self, origin: str, message: Message) -> Message | None:
        if message.get_header(MessageHeaderKey.CHANNEL) == CELLS_SERVICE:
            return make_reply(ReturnCode.UNAUTHENTICATED, REFUSED)
        return process(self, origin, message)

    return guarded
