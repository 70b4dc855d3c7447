"""Holds the names that both ends of a job use.

This module imports nothing of the project. A client's own process, which starts the jobs, reads
these names and must not load torch for them.
"""

import re

# Two environment variables say what belongs to one machine. A parameter would bring its paths into
# dvc.lock, and a message would let another member choose them.
# The checkout, or the working folder, of a client or the server.
HOME = "FEDLENS_HOME"
# The start-up kit of the submitter, in `remote` mode.
KIT = "FEDLENS_KIT"

# The name of the submitter.
ADMIN = "admin@fedlens.org"
# Within a submitter's kit: where the server is.
ADMIN_FILE = "startup/fed_admin.json"
# NVFlare's name for the server's cell in the network, whatever its host.
SERVERS_CELL = "server"
# The channel by which a cell tells others about its peers, itself and its memory.
CELLS_SERVICE = "_net_manager"

# The properties that a job brings to its server.
RUN = "run"
TERMS = "terms"
# The question to a job's server about its phase.
PROGRESS = "progress"
# NVFlare's names of jobs. A folder has this name, so another one could lead anywhere.
JOB = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# The files that a job's server leaves.
MODELS = "models.safetensors"
SETS = "sets"
HISTORY = "history.json"
FAILED = "failed.txt"

# The paths of classes and modules. Most of them stand in kits: a path that changes needs new kits.
COLLAB = "nvflare.collab.runtime"
PACKAGE = "pipelines.federation.network.flare"
SERVER = "pipelines.joint.server.Server"
CLIENT = "pipelines.joint.client.Client"
CONTROLLER = f"{COLLAB}.controller.CollabController"
EXECUTOR = f"{COLLAB}.executor.CollabExecutor"
LAUNCHER = f"{PACKAGE}.launcher.Launcher"
DEPLOYER = f"{PACKAGE}.deployer.Deployer"
WORKER = f"{PACKAGE}.worker"
SERVER_LAUNCHER = f"{PACKAGE}.server_launcher.ServerLauncher"
SERVER_WORKER = f"{PACKAGE}.server_worker"

# The only configuration that a client ever runs, and its file within a job.
CLIENT_FILE = "config/config_fed_client.json"
CLIENT_APP = {
    "format_version": 2,
    "executors": [
        {"tasks": ["*"], "executor": {"path": EXECUTOR, "args": {"client_obj_id": "_client"}}}
    ],
    "components": [{"id": "_client", "path": CLIENT, "args": {}}],
}
