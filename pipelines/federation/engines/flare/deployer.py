"""What a client deploys: a job that is exactly ours. NVFlare's deployer unpacks whatever lies in a job beside `custom`,
and first removes the folder that the job's name leads to, which may be the kit's own."""

import io
import json
import re
import zipfile
from pathlib import PurePosixPath

from nvflare.lighter.tool_consts import NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE
from nvflare.private.fed.utils.app_deployer import AppDeployer

from pipelines.federation.engines.flare.names import CLIENT_APP, CLIENT_FILE

SIGNATURES = {NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE}
JOB = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # a UUID, as NVFlare's servers give


class Deployer(AppDeployer):
    """Refuses an app that is not the one that `jobs.write` makes: one file, of this content."""

    def deploy(self, workspace, job_id, job_meta, app_name, app_data, fl_ctx) -> str:
        refused = wrong_with(job_id, app_data)
        return refused or super().deploy(workspace, job_id, job_meta, app_name, app_data, fl_ctx)


def wrong_with(job: str, app: bytes) -> str:
    """Why a job of this name with this app, a zip, is refused; empty where it is ours."""
    if not JOB.fullmatch(job):
        return "the job's name is none"
    with zipfile.ZipFile(io.BytesIO(app)) as archive:
        files = [name for name in archive.namelist() if not name.endswith("/")]
        others = [name for name in files if PurePosixPath(name).name not in SIGNATURES]
        if others != [CLIENT_FILE]:
            return "the job brings files that no job of this federation has"
        if json.loads(archive.read(CLIENT_FILE)) != CLIENT_APP:
            return "the job asks for other components than this federation's"
    return ""
