"""Start-up kits: a certificate authority, and for each participant a key, a certificate and a policy; made offline.

The policies are ours and narrower than NVFlare's: a client deploys our job and no other (`deployer`), of two classes;
it runs no shell command, and no log streams away. A client's owner may narrow them further (`local/`). A server passes
no message on under another's name (`origins`).
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
HEARTBEAT = (
    30.0  # seconds without one until a client counts as gone; one comes every ten. NVFlare: 600
)
NEVER = ("byoc", "shell_commands", "clone_job", "server-predeployed-flwr")
STREAMERS = ("site_log_streamer", "log_receiver")


def provision(folder: Path, clients: list[str], host: str, ports: tuple[int, int]) -> Path:
    """Makes the kits of a server at `host`, of `clients` and of who submits; each to be handed to its owner alone.

    Nobody but the user who runs this can read or list anything in `folder`, whatever the umask.

    ports: the server's, for clients and for who submits. Returns the folder of the kits, named by participant.

    Raises:
        UserError: a client has a name by which the network knows the server or its jobs. Or Git would add the kits'
            keys: `folder` lies in a repository that does not ignore it.
    """
    if reserved := sorted({SERVERS_CELL, AUTH_CLIENT_NAME_FOR_SJ}.intersection(clients)):
        raise UserError(
            f"No client of a network may be called {reserved[0]!r}, which is what NVFlare calls its server or a job."
        )
    if repository.would_add(folder):
        raise UserError(
            f"{folder} lies in a Git repository that does not ignore it, and kits hold private keys. Name a folder "
            "outside any repository, or one that its .gitignore covers."
        )
    description = {
        "api_version": 3,
        "name": PROJECT,
        "participants": [
            {
                "name": host,
                "type": "server",
                "org": PROJECT,
                "fed_learn_port": ports[0],
                "admin_port": ports[1],
            },
            *({"name": client, "type": "client", "org": client} for client in clients),
            {"name": ADMIN, "type": "admin", "org": PROJECT, "role": "project_admin"},
        ],
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
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # before anything is written in it, for the modes of what lies in it are set last
    folder.chmod(0o700)
    project, builders = prepare_project(description), prepare_builders(description)
    kits = Path(Provisioner(str(folder), builders).provision(project).get_result_location())
    for name in (host, *clients):
        _narrow(kits / name / "local", [SERVER, CONTROLLER] if name == host else [CLIENT, EXECUTOR])
    _keep_to_owner(folder)
    return kits


def _keep_to_owner(folder: Path) -> None:
    """Leaves `folder` and what lies in it to its user alone: NVFlare writes the authority's key for all to read."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(stat.S_IMODE(path.stat().st_mode) & stat.S_IRWXU)


def _narrow(local: Path, classes: list[str]) -> None:
    """What of NVFlare's own policy does not hold here: who may do what, and which classes a job may name."""
    resources = json.loads((local / "resources.json.default").read_text())
    resources |= {
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": classes,
        "allow_log_streaming": False,
    }
    resources["components"] = [
        part for part in resources["components"] if part["id"] not in STREAMERS
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
    (local / "resources.json").write_text(json.dumps(resources, indent=1))
    rights = ("submit_job", "manage_job", "download_job", "view", "operate")
    permissions = {
        "project_admin": {**dict.fromkeys(rights, "any"), **dict.fromkeys(NEVER, "none")}
    }
    policy = {"format_version": "1.0", "permissions": permissions}
    (local / "authorization.json").write_text(json.dumps(policy, indent=1))


def settle(kit: Path) -> None:
    """The server's jobs and snapshots into its kit, once it is where it will run: NVFlare's own place is /tmp."""
    file = kit.resolve() / "local/resources.json"
    resources = json.loads(file.read_text())
    if "snapshot_persistor" in resources:
        resources["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"] = str(
            file.parents[1] / "snapshots"
        )
        (manager,) = (part for part in resources["components"] if part["id"] == "job_manager")
        manager["args"]["uri_root"] = str(file.parents[1] / "jobs")
        file.write_text(json.dumps(resources, indent=1))
