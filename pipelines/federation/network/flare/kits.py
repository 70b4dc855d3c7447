"""Makes start-up kits: for each participant a key, a certificate and a policy, made offline.

A certificate authority signs the certificates. The policies are ours and narrower than NVFlare's. A
client deploys our job and no other (`deployer`), with two classes. It runs no shell command, and no
log streams away. A client's owner may narrow the policy further (`local/`). A server passes no
message on under another's name (`origins`).
"""

import json
import stat
from pathlib import Path

from nvflare.lighter.prov_utils import prepare_builders
from nvflare.lighter.provision import prepare_project
from nvflare.lighter.provisioner import Provisioner
from nvflare.private.defs import AUTH_CLIENT_NAME_FOR_SJ

from pipelines.errors import UserError
from pipelines.federation.network.flare.names import (
    ADMIN,
    CLIENT,
    CONTROLLER,
    DEPLOYER,
    EXECUTOR,
    LAUNCHER,
    SERVER,
    SERVER_LAUNCHER,
    SERVERS_CELL,
)
from pipelines.guard import repository

PROJECT = "fedlens"
# Seconds without a heartbeat until a client counts as gone. One comes every ten; NVFlare waits 600.
HEARTBEAT = 30.0
RIGHTS = ("submit_job", "manage_job", "download_job", "view", "operate")
# at the server the submitter may also ask a job for its phase
AT_SERVER = ("app_command",)
FORBIDDEN_RIGHTS = ("byoc", "shell_commands", "clone_job", "server-predeployed-flwr")
LOG_STREAMERS = ("site_log_streamer", "log_receiver")


def provision(folder: Path, clients: list[str], host: str, ports: tuple[int, int]) -> Path:
    """Makes the kits of a server, of all clients and of the submitter.

    Each kit is for its owner alone. Nobody but the user who runs this can read or list anything in
    `folder`, whatever the umask.

    Args:
        folder: The folder to make, outside any Git repository or ignored by it.
        clients: The names of the clients.
        host: The name under which the clients reach the server.
        ports: The server's port for clients, and the one for the submitter.

    Returns:
        The folder of the kits, which are named by participant.

    Raises:
        UserError: A client has a name by which the network knows the server or its jobs. Or Git
            would add the kits' keys: `folder` lies in a repository that does not ignore it.
    """
    reserved = sorted({SERVERS_CELL, AUTH_CLIENT_NAME_FOR_SJ}.intersection(clients))
    if reserved:
        raise UserError(
            f"No client of a network may be called {reserved[0]!r}, which is what NVFlare calls "
            "its server or a job."
        )
    if repository.would_add(folder):
        raise UserError(
            f"{folder} lies in a Git repository that does not ignore it, and kits hold private "
            "keys. Name a folder outside any repository, or one that its .gitignore covers."
        )
    description = _description(clients, host, ports)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # before anything is written in it, for the modes of what lies in it are set last
    folder.chmod(0o700)
    project = prepare_project(description)
    builders = prepare_builders(description)
    kits = Path(Provisioner(str(folder), builders).provision(project).get_result_location())
    for name in (host, *clients):
        _narrow(kits / name / "local", [SERVER, CONTROLLER] if name == host else [CLIENT, EXECUTOR])
    _keep_to_owner(folder)
    return kits


def _description(clients: list[str], host: str, ports: tuple[int, int]) -> dict:
    """Returns what NVFlare's provisioner needs to know of the participants."""
    server = {
        "name": host,
        "type": "server",
        "org": PROJECT,
        "fed_learn_port": ports[0],
        "admin_port": ports[1],
    }
    participants = [server]
    for client in clients:
        participants.append({"name": client, "type": "client", "org": client})
    submitter = {"name": ADMIN, "type": "admin", "org": PROJECT, "role": "project_admin"}
    participants.append(submitter)
    return {
        "api_version": 3,
        "name": PROJECT,
        "participants": participants,
        "builders": [
            {"path": "nvflare.lighter.impl.workspace.WorkspaceBuilder"},
            {
                "path": "nvflare.lighter.impl.static_file.StaticFileBuilder",
                "args": {"config_folder": "config"},
            },
            {"path": "nvflare.lighter.impl.cert.CertBuilder"},
            {"path": "nvflare.lighter.impl.signature.SignatureBuilder"},
        ],
    }


def _keep_to_owner(folder: Path) -> None:
    """Leaves `folder` and what lies in it to its user alone.

    NVFlare writes the authority's key so that all can read it.
    """
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(stat.S_IMODE(path.stat().st_mode) & stat.S_IRWXU)


def _narrow(local: Path, classes: list[str]) -> None:
    """Writes a participant's own policy: who may do what, and which classes a job may name.

    Args:
        local: The folder `local` of the kit.
        classes: The paths of the classes.
    """
    resources = json.loads((local / "resources.json.default").read_text())
    resources |= {
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": classes,
        "allow_log_streaming": False,
    }
    resources["components"] = [
        part for part in resources["components"] if part["id"] not in LOG_STREAMERS
    ]
    for server in resources.get("servers", []):
        server["heart_beat_timeout"] = HEARTBEAT
    for part in resources["components"]:
        if part["path"].endswith(".ClientProcessJobLauncher"):
            part["path"] = LAUNCHER
            resources["components"].append({"id": "app_deployer", "path": DEPLOYER, "args": {}})
            break
        if part["path"].endswith(".ServerProcessJobLauncher"):
            part["path"] = SERVER_LAUNCHER
    _write_json(local / "resources.json", resources)
    is_server = SERVER in classes
    rights = (*RIGHTS, *AT_SERVER) if is_server else RIGHTS
    submitter = dict.fromkeys(rights, "any") | dict.fromkeys(FORBIDDEN_RIGHTS, "none")
    policy = {"format_version": "1.0", "permissions": {"project_admin": submitter}}
    _write_json(local / "authorization.json", policy)


def set_storage(kit: Path) -> None:
    """Places a server's jobs and snapshots in its kit, once the kit is where it will run.

    NVFlare's own place is /tmp. A client's kit stays as it is.
    """
    folder = kit.resolve()
    file = folder / "local/resources.json"
    resources = json.loads(file.read_text())
    if "snapshot_persistor" not in resources:
        return
    snapshots = resources["snapshot_persistor"]["args"]["storage"]["args"]
    snapshots["root_dir"] = str(folder / "snapshots")
    (manager,) = (part for part in resources["components"] if part["id"] == "job_manager")
    manager["args"]["uri_root"] = str(folder / "jobs")
    _write_json(file, resources)


def _write_json(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=1))
