"""What of NVFlare's own a client answers: the life of a job, asked for by the server, and a job that is exactly ours.

NVFlare's client also runs shell commands, deletes runs, sets logs and reports its machine for whoever sends the message
without asking for a permission check, other clients among them; and it unpacks whatever lies in a job beside `custom`.
Neither is needed here. Imported with the launcher, which the client's kit names, before NVFlare takes its own list.
"""

import io
import json
import zipfile
from pathlib import PurePosixPath

from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
from nvflare.lighter.tool_consts import NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE
from nvflare.private.admin_defs import error_reply
from nvflare.private.defs import new_cell_message
from nvflare.private.fed.client import client_req_processors as theirs
from nvflare.private.fed.client.admin import FedAdminAgent
from nvflare.private.fed.utils.app_deployer import AppDeployer

from pipelines.federation.engines.flare.jobs import CLIENT_APP, CLIENT_FILE

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
SIGNATURES = {NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE}


class Deployer(AppDeployer):
    """Refuses an app that is not, byte for byte of what it says, the one that `jobs.write` makes."""

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


theirs.ClientRequestProcessors.request_processors[:] = [
    one for one in theirs.ClientRequestProcessors.request_processors if isinstance(one, KEPT)
]
FedAdminAgent._dispatch_request = from_the_server_alone(FedAdminAgent._dispatch_request)
