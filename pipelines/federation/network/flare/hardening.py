"""What of NVFlare's own a client answers: the life of a job, to its server, and nothing of the machine.

NVFlare's client also runs shell commands, deletes runs, sets logs, tells its memory and its errors, and takes the tasks
of a job, for whoever sends the message without asking for a permission check, other clients among them; and it connects
to any address that a message names. None of it is needed here.

An honest server sees to it that an origin is who it says it is (`origins`). A dishonest one may name any, so what is
answered at all is what a server may know.
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

from pipelines.federation.network.flare.cells import close
from pipelines.federation.network.flare.names import SERVERS_CELL

log = logging.getLogger("fedlens.client")
OF_A_JOB = (  # what the client's own process does
    requests.ClientStatusProcessor,
    requests.AbortAppProcessor,
    requests.DeployProcessor,
    requests.CheckResourceProcessor,
    requests.CancelResourceProcessor,
    requests.StartJobProcessor,
    requests.NotifyJobStatusProcessor,
)
TO_A_JOB = (  # and what its job process does
    admin_commands.CheckStatusCommand,
    admin_commands.AbortCommand,
    admin_commands.AbortTaskCommand,
    admin_commands.ByeCommand,
)
TELL_ERRORS = (
    admin,
    scheduler_cmds,
    app_deployer,
    dispatch,
)  # by secure_format_exception, into an answer


def narrow(put: Callable[[object, str, object], None] = setattr) -> None:
    """Of this process, before it has a cell."""
    keep_only(requests.ClientRequestProcessors.request_processors, OF_A_JOB)
    keep_only(admin_commands.AdminCommands.commands, TO_A_JOB)
    close(put)
    put(CoreCell, "_process_request", from_the_server_alone(CoreCell._process_request))
    for module in TELL_ERRORS:
        put(module, "secure_format_exception", kind_of)
    put(dispatch, "secure_format_traceback", lambda: "")


def keep_only(processors: list, kinds: tuple[type, ...]) -> None:
    """Removes all others, in place: NVFlare holds the list itself."""
    processors[:] = [one for one in processors if isinstance(one, kinds)]


def from_the_server_alone(process: Callable) -> Callable:
    """A cell's handling of requests, for those of the server's processes and of the client's own."""

    def guarded(self, origin: str, message: Message) -> Message | None:
        sender, site = (name.partition(".")[0] for name in (origin, self.my_info.fqcn))
        if sender not in (SERVERS_CELL, site):
            return make_reply(
                ReturnCode.UNAUTHENTICATED,
                "only the job's server is answered, and what a job needs",
            )
        return process(self, origin, message)

    return guarded


def kind_of(error: BaseException, *_) -> str:
    """Instead of an exception's text, in which paths or records may stand. That goes into this side's log."""
    log.error("an answer tells its kind alone:", exc_info=error)
    return type(error).__name__
