"""What of NVFlare's own a client answers: the life of a job, asked for by the server, and a job that is exactly ours.

NVFlare's client also runs shell commands, deletes runs, sets logs and reports its machine, its memory and its errors
for whoever sends the message without asking for a permission check, other clients among them; and it unpacks whatever
lies in a job beside `custom`. None of it is needed here. Imported by `launcher`, which the client's kit names, and by
`worker`, before NVFlare takes its own lists. An origin is what the sender says; a dishonest server may say any. So
what is answered at all is what a server may know.
"""

import io
import json
import zipfile
from pathlib import PurePosixPath

from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, ReturnCode
from nvflare.fuel.f3.cellnet.net_agent import NetAgent
from nvflare.fuel.f3.cellnet.utils import make_reply
from nvflare.fuel.f3.message import Message
from nvflare.lighter.tool_consts import NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE
from nvflare.private.admin_defs import error_reply
from nvflare.private.defs import new_cell_message
from nvflare.private.fed.client import admin_commands, fed_client_base
from nvflare.private.fed.client import client_req_processors as theirs
from nvflare.private.fed.client.admin import FedAdminAgent
from nvflare.private.fed.utils.app_deployer import AppDeployer

from pipelines.federation.engines.flare.names import CLIENT_APP, CLIENT_FILE

SERVER = "server"  # the cell of the server's own process
KEPT = (
    theirs.ClientStatusProcessor,
    theirs.AbortAppProcessor,
    theirs.DeployProcessor,
    theirs.CheckResourceProcessor,
    theirs.CancelResourceProcessor,
    theirs.StartJobProcessor,
    theirs.NotifyJobStatusProcessor,
)
TO_A_JOB = (  # and what its job process does, asked by the client's own process
    admin_commands.CheckStatusCommand,
    admin_commands.AbortCommand,
    admin_commands.AbortTaskCommand,
    admin_commands.ByeCommand,
)
SIGNATURES = {NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE}


class Deployer(AppDeployer):
    """Refuses an app that is not the one that `jobs.write` makes: one file, of this content."""

    def deploy(self, workspace, job_id, job_meta, app_name, app_data, fl_ctx) -> str:
        refused = wrong_with(app_data)
        return refused or super().deploy(workspace, job_id, job_meta, app_name, app_data, fl_ctx)


def wrong_with(app: bytes) -> str:
    """Why an app's zip is refused; empty where it is ours."""
    with zipfile.ZipFile(io.BytesIO(app)) as archive:
        files = [name for name in archive.namelist() if not name.endswith("/")]
        named = [PurePosixPath(name) for name in files]
        others = [name for name in named if name.name not in SIGNATURES]
        if [str(name) for name in others] != [CLIENT_FILE]:
            return "the job brings files that no job of this federation has"
        if json.loads(archive.read(CLIENT_FILE)) != CLIENT_APP:
            return "the job asks for other components than this federation's"
    return ""


def from_the_server_alone(dispatch):
    def guarded(self, request):
        if request.get_header(MessageHeaderKey.ORIGIN) != SERVER:
            return new_cell_message({}, error_reply("only the server is answered"))
        return dispatch(self, request)

    return guarded


class Silent(NetAgent):
    """The agent of a cell, without its service to others: who its peers are, its process and memory, its end."""

    def __init__(self, cell, *args, **kwargs):
        super().__init__(cell, *args, **kwargs)
        self.cell.add_incoming_request_filter("_net_manager", "*", refused)


def refused(message: Message) -> Message:
    return make_reply(ReturnCode.UNAUTHENTICATED, "this client tells nothing of its process")


def kept(processors: list, kinds: tuple[type, ...]) -> None:
    """Removes all others, in place: NVFlare holds the list itself."""
    processors[:] = [one for one in processors if isinstance(one, kinds)]


kept(theirs.ClientRequestProcessors.request_processors, KEPT)
kept(admin_commands.AdminCommands.commands, TO_A_JOB)
FedAdminAgent._dispatch_request = from_the_server_alone(FedAdminAgent._dispatch_request)
fed_client_base.NetAgent = Silent
