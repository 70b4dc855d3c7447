"""Submits a run as an NVFlare job, waits for its end, and reads its history.

A job holds names of installed code and of the run. It holds no code.
"""

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nvflare.fuel.flare_api.flare_api import Session, new_secure_session

from pipelines.config import Params
from pipelines.config.federation import Federation
from pipelines.datasets import exports
from pipelines.errors import UserError
from pipelines.federation.core.rounds import History, NetworkRun
from pipelines.federation.home import results
from pipelines.federation.network.flare import names
from pipelines.federation.network.gate import plain
from pipelines.federation.run_spec import RunSpec
from pipelines.files import read_json

# Seconds between two looks at a server or a job.
POLL = 0.5
# Seconds between two questions to a job about its phase.
ASK_EVERY = 5.0
# Seconds that a server that listens has to open a session. NVFlare may wait without end when it
# gives up a connection that is half open, so a busy server must be given time.
PATIENCE = 60.0


def write(
    folder: Path, run: dict[str, str], terms: dict, clients: list[str], settings: Federation
) -> None:
    """Writes a job's folder: a description, a configuration for the server and one for clients.

    Args:
        folder: The new folder, whose name is the job's.
        run: The run's name.
        terms: What the submitter has for this run.
        clients: The clients that take part.
        settings: The parameters about the network.
    """
    props = {names.RUN: run, names.TERMS: terms}
    fewest_clients = len(clients) if settings.on_loss == "fail" else 1
    controller = {
        "server_obj_id": "_server",
        "sync_task_timeout": settings.start_timeout,
        "props": props,
    }
    meta = {
        "name": folder.name,
        "min_clients": fewest_clients,
        "deploy_map": {"server": ["server"], "client": clients},
    }
    _write_json(folder / "meta.json", {**meta, "resource_spec": {}})
    workflows = [{"id": "controller", "path": names.CONTROLLER, "args": controller}]
    server_app = {
        "format_version": 2,
        "workflows": workflows,
        "components": [{"id": "_server", "path": names.SERVER, "args": {}}],
    }
    _write_json(folder / "server/config/config_fed_server.json", server_app)
    _write_json(folder / "client" / names.CLIENT_FILE, names.CLIENT_APP)


@contextmanager
def connected(kit: Path, timeout: float, check: Callable[[], None]) -> Iterator[Session]:
    """Yields a session of the submitter, once the server answers.

    Args:
        kit: The submitter's kit.
        timeout: Seconds to wait for the server.
        check: Is called at every look, and raises if it is in vain to wait.

    Raises:
        UserError: The folder is no kit of a submitter, or the server does not answer in time.
    """
    session = _open_session(kit, timeout, check)
    try:
        yield session
    finally:
        session.close()


def _open_session(kit: Path, timeout: float, check: Callable[[], None]) -> Session:
    description = kit / names.ADMIN_FILE
    if not description.exists():
        raise UserError(f"{kit} is no start-up kit of a submitter: it lacks {names.ADMIN_FILE}.")
    server = read_json(description)["admin"]
    began = time.monotonic()
    while True:
        try:
            # a session is not tried before: to end one that does not connect takes long
            socket.create_connection((server["host"], server["port"]), timeout=5.0).close()
            return new_secure_session(names.ADMIN, str(kit), timeout=PATIENCE)
        except Exception as error:
            check()
            if time.monotonic() - began > timeout:
                raise UserError(
                    f"No server answers this kit within {timeout:g} s ({error})."
                ) from None
            time.sleep(POLL)


def submit_and_fetch(session: Session, job: Path, logs: str, check: Callable[[], None]) -> Path:
    """Submits a job, waits for its end, and fetches its server's folder.

    Args:
        session: The submitter's session.
        job: The job's folder.
        logs: A sentence about where the logs lie, with "{job}" for the job's name.
        check: Is called at every look, and raises if it is in vain to wait.

    Returns:
        The fetched folder.

    Raises:
        UserError: The server gives the job a name that is none.
    """
    name = session.submit_job(str(job))
    # the server chose it, and files are fetched by it
    if not isinstance(name, str) or not names.JOB.fullmatch(name):
        raise UserError("The server gave the job a name that NVFlare does not give.")
    progress = _Progress(session, name)
    try:
        say(f"Job {name} is submitted. {logs.replace('{job}', name)}")
        while not _has_finished(session, name):
            check()
            progress.tell()
            time.sleep(POLL)
    except BaseException:
        session.abort_job(name)
        raise
    return Path(session.download_job_result(name)) / "workspace"


def say(line: str) -> None:
    """Prints a line for the submitter. A terminal that is gone ends no run that clients pay for."""
    with suppress(OSError, ValueError):
        print(f"  {line}", flush=True)


class _Progress:
    """Tells the phase of a job in the terminal, whenever it has changed.

    Args:
        session: The submitter's session.
        job: The job's name.
    """

    def __init__(self, session: Session, job: str):
        self.session = session
        self.job = job
        self.began = self.asked = time.monotonic()
        self.told = ""

    def tell(self) -> None:
        """Asks the job, unless it was asked a moment ago. One that has not begun says nothing."""
        now = time.monotonic()
        if now - self.asked < ASK_EVERY:
            return
        self.asked = now
        try:
            answer = self.session.do_app_command(self.job, names.PROGRESS, None)
            phase = plain(str(answer["phase"]))
        except Exception:
            # whether it still runs is for `_has_finished` to say
            return
        if phase not in ("", self.told):
            self.told = phase
            say(f"{now - self.began:.0f} s: {phase}")


def _has_finished(session: Session, name: str, attempts: int = 20) -> bool:
    """Returns whether a job has finished. A server may be silent for a moment.

    Raises:
        UserError: The server has not answered in all attempts.
    """
    for _ in range(attempts):
        try:
            return session.get_job_meta(name)["status"].startswith("FINISHED")
        except Exception as error:
            why = error
            time.sleep(POLL)
    raise UserError(
        f"The server does not answer any more ({why}). The run may still be going on there."
    )


def read(folder: Path, params: Params, run: RunSpec) -> NetworkRun:
    """Returns the history, and the sets, that a job's server left in its folder.

    Args:
        folder: The job's folder.
        params: The submitter's parameters.
        run: The run.

    Raises:
        UserError: The run failed; in the server's words.
    """
    content = history(folder)
    lost = {plain(client): plain(why) for client, why in content["lost"].items()}
    cost = dict(content["cost"])
    if lost:
        cost["lost"] = lost
    models = results.load_models(folder / names.MODELS)
    handed_in = {}
    for client in sorted(params.clients):
        if (folder / names.SETS / client).exists():
            profile = params.profiles[run.dataset]
            handed_in[client] = exports.read(folder / names.SETS / client, profile)
    return NetworkRun(History(models, content["curves"], cost), content["spent"], handed_in)


def history(folder: Path) -> dict:
    """Returns the content of the history that a job's server left.

    Args:
        folder: The job's folder.

    Raises:
        UserError: The run failed; in the server's words.
    """
    if not (folder / names.HISTORY).exists():
        why = "its server's log says why."
        if (folder / names.FAILED).exists():
            why = (folder / names.FAILED).read_text()
        raise UserError(f"The federated run failed: {plain(why)}")
    return read_json(folder / names.HISTORY)


def _write_json(path: Path, content: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1))
