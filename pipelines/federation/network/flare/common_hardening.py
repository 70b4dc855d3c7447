"""Restricts what every process of the network offers to others, at clients and at the server alike.

NVFlare's cells serve the state of their process, and connect to addresses that a message names.
NVFlare also logs the names in a message as they come. A line break in one could begin a line that
looks like the log's own, and an escape sequence could command a terminal.
"""

import logging
from collections.abc import Callable

from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, ReturnCode
from nvflare.fuel.f3.cellnet.utils import make_reply
from nvflare.fuel.f3.message import Message

from pipelines.federation.network.flare.names import CELLS_SERVICE

REFUSED = "a message asks for nothing of the network's own"
CONTINUED = "\n    "


def close(put: Callable[[object, str, object], None]) -> None:
    """Restricts this process, before it has a cell.

    The process serves nobody the state of its cell. It connects to no address that a message names.
    It logs others' text as plain text.

    Args:
        put: Sets an attribute, as `setattr` does.
    """
    put(CoreCell, "_process_request", without_cells_service(CoreCell._process_request))
    put(CoreCell, "_add_adhoc_connector", lambda cell, to_cell, url: None)
    put(logging.LogRecord, "getMessage", as_text(logging.LogRecord.getMessage))


def without_cells_service(process: Callable) -> Callable:
    """Returns a cell's handling of requests, without its service about peers, memory and end."""

    def guarded(self, origin: str, message: Message) -> Message | None:
        if message.get_header(MessageHeaderKey.CHANNEL) == CELLS_SERVICE:
            return make_reply(ReturnCode.UNAUTHENTICATED, REFUSED)
        return process(self, origin, message)

    return guarded


def as_text(get_message: Callable) -> Callable:
    """Returns logging's way to read a record's message, followed by `shown`."""

    def shown_message(self) -> str:
        return shown(get_message(self))

    return shown_message


def shown(text: str) -> str:
    """Returns the text with control characters written out, and with its further lines indented."""
    lines = text.rstrip("\n").split("\n")
    return CONTINUED.join("".join(map(_shown, line)) for line in lines)


def _shown(character: str) -> str:
    return character if character.isprintable() or character == "\t" else ascii(character)[1:-1]
