"""Deploys a job at a client only if it is exactly this federation's.

NVFlare's deployer unpacks whatever a job holds beside `custom`. Before that it removes the folder
that the job's name leads to, which may be the kit's own. And even before that, the client's process
unpacks the job to verify its signatures, whatever its size. So a job is checked here before both.
"""

import io
import json
import stat
import zipfile
import zlib
from collections.abc import Callable

from nvflare.lighter.tool_consts import NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE
from nvflare.private.admin_defs import Message, error_reply
from nvflare.private.defs import ERROR_MSG_PREFIX, RequestHeader
from nvflare.private.fed.client.training_cmds import DeployProcessor
from nvflare.private.fed.utils.app_deployer import AppDeployer

from pipelines.federation.network.flare.names import CLIENT_APP, CLIENT_FILE, JOB

FOLDERS = {"config/"}
# NVFlare signs each folder of a job, the topmost among them.
SIGNATURES = {
    NVFLARE_SIG_FILE,
    NVFLARE_SUBMITTER_CRT_FILE,
    f"config/{NVFLARE_SIG_FILE}",
    f"config/{NVFLARE_SUBMITTER_CRT_FILE}",
}
# Bytes, packed and unpacked. Ours has some ten thousand, most of them signatures.
LARGEST_APP = 2**20
NO_NAME = "the job's name is none"
UNREADABLE = "the job cannot be read"
TOO_LARGE = "the job brings more than a job of this federation has"
OTHER_FILES = "the job brings files that no job of this federation has"
OTHER_PARTS = "the job asks for other components than this federation's"
# A zip raises these if it is none, damaged or encrypted, or if this Python cannot unpack it. JSON
# that is none or nested too deeply raises them, too.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
    ValueError,
)


class Deployer(AppDeployer):
    """Deploys the app that `jobs.write` makes, one file of this content, and refuses any other."""

    def deploy(self, workspace, job_id, job_meta, app_name, app_data, fl_ctx) -> str:
        """Deploys an app.

        Args:
            workspace: NVFlare's folders of this client.
            job_id: The name of the job, and of the folder that NVFlare makes for it.
            job_meta: The job's description.
            app_name: The app's name.
            app_data: The app, the bytes of a zip.
            fl_ctx: NVFlare's context.

        Returns:
            Why the app is refused; empty if it was deployed.
        """
        refusal = reason_to_refuse(job_id, app_data)
        return refusal or super().deploy(workspace, job_id, job_meta, app_name, app_data, fl_ctx)


def with_check(process: Callable) -> Callable:
    """Returns NVFlare's handling of a job that the server sends, after our check of the job."""

    def guarded(self, request: Message, app_ctx) -> Message:
        refusal = reason_to_refuse(request.get_header(RequestHeader.JOB_ID), request.body)
        if refusal:
            return error_reply(f"{ERROR_MSG_PREFIX}: {refusal}")
        return process(self, request, app_ctx)

    return guarded


# NVFlare imports this module, which the client's kit names, as the process begins
DeployProcessor.process = with_check(DeployProcessor.process)


def reason_to_refuse(job: str, app: bytes) -> str:
    """Returns why a job is refused; empty if it is ours.

    Nothing is written to disk. No more is unpacked in memory than such a job may have.

    Args:
        job: The job's name.
        app: Its app, the bytes of a zip.
    """
    if not isinstance(job, str) or not JOB.fullmatch(job):
        return NO_NAME
    if not isinstance(app, bytes):
        return UNREADABLE
    if len(app) > LARGEST_APP:
        return TOO_LARGE
    try:
        with zipfile.ZipFile(io.BytesIO(app)) as archive:
            return _reason_within(archive)
    except DAMAGED:
        return UNREADABLE


def _reason_within(archive: zipfile.ZipFile) -> str:
    """Checks what the archive says of its members, folders too; then what the members hold."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if CLIENT_FILE not in names or len(set(names)) < len(names):
        return OTHER_FILES
    if set(names) - {CLIENT_FILE, *SIGNATURES, *FOLDERS}:
        return OTHER_FILES
    if not all(map(_is_plain, members)):
        return OTHER_FILES
    if sum(member.file_size for member in members) > LARGEST_APP:
        return TOO_LARGE
    contents = {member.filename: _read(archive, member) for member in members}
    for member in members:
        if len(contents[member.filename]) != member.file_size:
            return TOO_LARGE
    return "" if json.loads(contents[CLIENT_FILE]) == CLIENT_APP else OTHER_PARTS


def _is_plain(member: zipfile.ZipInfo) -> bool:
    """Returns whether a member is a file or folder as its name says, by the archiver's mode.

    A link is neither.
    """
    kind = stat.S_IFMT(member.external_attr >> 16)
    return kind in (0, stat.S_IFDIR if member.is_dir() else stat.S_IFREG)


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Returns at most as much as a job may have: a member may hold more than the archive says."""
    with archive.open(member) as content:
        return content.read(LARGEST_APP + 1)
