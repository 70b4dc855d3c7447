"""Deploys a job only if it is exactly ours.

NVFlare's deployer unpacks whatever lies in a job beside `custom`, and first removes the folder that the job's name
leads to, which may be the kit's own. Before that, the client's process unpacks the job to verify its signatures,
whatever its size. So a job is looked at here before either.
"""

import io
import json
import re
import stat
import zipfile
import zlib
from collections.abc import Callable

from nvflare.lighter.tool_consts import NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE
from nvflare.private.admin_defs import Message, error_reply
from nvflare.private.defs import ERROR_MSG_PREFIX, RequestHeader
from nvflare.private.fed.client.training_cmds import DeployProcessor
from nvflare.private.fed.utils.app_deployer import AppDeployer

from pipelines.federation.network.flare.names import CLIENT_APP, CLIENT_FILE

FOLDERS = {"config/"}
SIGNATURES = {
    folder + file
    for folder in ("", *FOLDERS)
    for file in (NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE)
}
LARGEST_APP = (
    2**20
)  # bytes, packed and unpacked: ours has some ten thousand, most of them signatures
JOB = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # a UUID, as NVFlare's servers give
NO_NAME = "the job's name is none"
UNREADABLE = "the job cannot be read"
TOO_LARGE = "the job brings more than a job of this federation has"
OTHER_FILES = "the job brings files that no job of this federation has"
OTHER_PARTS = "the job asks for other components than this federation's"
# by a zip that is none, damaged, encrypted, or packed in a way that this Python does not know; and by JSON that is none
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
    """Refuses an app that is not the one that `jobs.write` makes: one file, of this content."""

    def deploy(self, workspace, job_id, job_meta, app_name, app_data, fl_ctx) -> str:
        refused = wrong_with(job_id, app_data)
        return refused or super().deploy(workspace, job_id, job_meta, app_name, app_data, fl_ctx)


def looked_at_first(process: Callable) -> Callable:
    """Returns NVFlare's handling of a job that the server sends, for jobs that are ours alone."""

    def guarded(self, request: Message, app_ctx) -> Message:
        refused = wrong_with(request.get_header(RequestHeader.JOB_ID), request.body)
        return (
            error_reply(f"{ERROR_MSG_PREFIX}: {refused}")
            if refused
            else process(self, request, app_ctx)
        )

    return guarded


# NVFlare imports this module, which the client's kit names, as the process begins
DeployProcessor.process = looked_at_first(DeployProcessor.process)


def wrong_with(job: str, app: bytes) -> str:
    """Why a job of this name with this app, a zip, is refused; empty where it is ours. Nothing is written to disk, and
    no more is unpacked in memory than such a job may have."""
    if not isinstance(job, str) or not JOB.fullmatch(job):
        return NO_NAME
    if not isinstance(app, bytes):
        return UNREADABLE
    if len(app) > LARGEST_APP:
        return TOO_LARGE
    try:
        with zipfile.ZipFile(io.BytesIO(app)) as archive:
            return _wrong_within(archive)
    except DAMAGED:
        return UNREADABLE


def _wrong_within(archive: zipfile.ZipFile) -> str:
    """By what the archive says of its members, folders too; then by what they hold."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if (
        CLIENT_FILE not in names
        or len(set(names)) < len(names)
        or set(names) - {CLIENT_FILE, *SIGNATURES, *FOLDERS}
    ):
        return OTHER_FILES
    if not all(_is_plain(member) for member in members):
        return OTHER_FILES
    if sum(member.file_size for member in members) > LARGEST_APP:
        return TOO_LARGE
    contents = {member.filename: _read(archive, member) for member in members}
    if any(len(contents[member.filename]) != member.file_size for member in members):
        return TOO_LARGE
    return "" if json.loads(contents[CLIENT_FILE]) == CLIENT_APP else OTHER_PARTS


def _is_plain(member: zipfile.ZipInfo) -> bool:
    """Returns whether it is a file or folder as its name says, by the archiver's mode; a link is neither."""
    kind = stat.S_IFMT(member.external_attr >> 16)
    return kind in (0, stat.S_IFDIR if member.is_dir() else stat.S_IFREG)


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """At most as much as a job may have: a member may unpack to more than the archive says."""
    with archive.open(member) as content:
        return content.read(LARGEST_APP + 1)
