"""Restricts a client's processes to the requests of its own server that the life of a job needs.

NVFlare's client also runs shell commands, deletes runs, sets log levels, and reports its memory and
its errors. Its job process takes tasks. Both serve any sender that asks for no permission check,
other clients among them. They also connect to any address that a message names. None of this is
needed here.

An honest server checks that an origin is the true one (`origins`). A dishonest one may name any
origin, so a client answers nothing that a server may not know.
"""

import logging
from collections.abc import Callable

from nvflare.collab.runtime import dispatch
from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.defs import ReturnCode
from nvflare.fuel.f3.cellnet.utils import make_reply
from nvflare.fuel.f3.message import Message
from nvflare.private.fed.client import admin, admin_commands, scheduler_cmds
from nvflare.private.fed.client import client_req_processors as requests
from nvflare.private.fed.utils import app_deployer

from pipelines.federation.network.flare.common_hardening import close
from pipelines.federation.network.flare.names import SERVERS_CELL

log = logging.getLogger("fedlens.client")
# The requests that the client's own process answers.
CLIENT_REQUESTS = (
    requests.ClientStatusProcessor,
    requests.AbortAppProcessor,
    requests.DeployProcessor,
    requests.CheckResourceProcessor,
    requests.CancelResourceProcessor,
    requests.StartJobProcessor,
    requests.NotifyJobStatusProcessor,
)
# The commands that its job process answers.
JOB_COMMANDS = (
    admin_commands.CheckStatusCommand,
    admin_commands.AbortCommand,
    admin_commands.AbortTaskCommand,
    admin_commands.ByeCommand,
)
# The modules that put an exception's text into an answer, by secure_format_exception.
MODULES_WITH_ERROR_TEXT = (admin, scheduler_cmds, app_deployer, dispatch)


def narrow(put: Callable[[object, str, object], None] = setattr) -> None:
    """Restricts this process, a client's own or one of its jobs', before it has a cell.

    Args:
        put: Sets an attribute, as `setattr` does.
    """
    keep_only(requests.ClientRequestProcessors.request_processors, CLIENT_REQUESTS)
    keep_only(admin_commands.AdminCommands.commands, JOB_COMMANDS)
    close(put)
    put(CoreCell, "_process_request", from_the_server_alone(CoreCell._process_request))
    for module in MODULES_WITH_ERROR_TEXT:
        put(module, "secure_format_exception", kind_of)
    put(dispatch, "secure_format_traceback", lambda: "")


def keep_only(processors: list, kinds: tuple[type, ...]) -> None:
    """Removes all other processors, in place because NVFlare holds the list itself."""
    processors[:] = [processor for processor in processors if isinstance(processor, kinds)]


def from_the_server_alone(process: Callable) -> Callable:
    """Returns a cell's handling of requests, for those from the server's cells and the client's."""

    def guarded(self, origin: str, message: Message) -> Message | None:
        sender = origin.partition(".")[0]
        site = self.my_info.fqcn.partition(".")[0]
        if sender not in (SERVERS_CELL, site):
            return make_reply(
                ReturnCode.UNAUTHENTICATED,
                "only the job's server is answered, and what a job needs",
            )
        return process(self, origin, message)

    return guarded


def kind_of(error: BaseException, *_) -> str:
    """Returns the class of an exception in place of its text, in which paths or records may stand.

    The text goes into this side's log.
    """
    log.error("an answer tells its kind alone:", exc_info=error)
    return type(error).__name__
