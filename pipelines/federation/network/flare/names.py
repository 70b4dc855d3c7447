"""What both ends of a job call by name. Imports nothing: a client's own process, which starts the jobs, reads these
names, and must not load torch for them."""

# Where a job process finds what is its own, by environment variable: never by a parameter, which would bring places of
# one machine into dvc.lock, and never by a message.
HOME = "FEDLENS_HOME"  # the checkout, or working folder, of the client or server
KIT = "FEDLENS_KIT"  # the start-up kit of whoever submits, in `remote` mode

ADMIN = "admin@fedlens.org"  # who submits
SERVERS_CELL = "server"  # the server's name in the network, whatever its host: NVFlare's word
CELLS_SERVICE = "_net_manager"  # the channel of a process's service to others, of its peers, itself and its memory

# in a job: its properties, and what its server leaves
RUN, TERMS = "run", "terms"
MODELS, HISTORY, FAILED = "models.safetensors", "history.json", "failed.txt"

# the classes that its processes make
COLLAB, OURS = "nvflare.collab.runtime", "pipelines.federation.network.flare"
SERVER, CLIENT = f"{OURS}.server.Server", f"{OURS}.client.Client"
CONTROLLER, EXECUTOR = f"{COLLAB}.controller.CollabController", f"{COLLAB}.executor.CollabExecutor"
LAUNCHER, DEPLOYER, WORKER = (
    f"{OURS}.launcher.Launcher",
    f"{OURS}.deployer.Deployer",
    f"{OURS}.worker",
)
SERVER_LAUNCHER, SERVER_WORKER = f"{OURS}.server_launcher.ServerLauncher", f"{OURS}.server_worker"

CLIENT_FILE = "config/config_fed_client.json"
CLIENT_APP = {  # all that a client is ever asked to run
    "format_version": 2,
    "executors": [
        {"tasks": ["*"], "executor": {"path": EXECUTOR, "args": {"client_obj_id": "_client"}}}
    ],
    "components": [{"id": "_client", "path": CLIENT, "args": {}}],
}
