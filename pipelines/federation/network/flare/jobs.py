"""A run as an NVFlare job: names of installed code and of the run, no code; submitted, watched, its history fetched."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nvflare.fuel.flare_api.flare_api import Session, new_secure_session

from pipelines.config.federation import Federation
from pipelines.errors import UserError
from pipelines.federation.core.rounds import History, NetworkRun
from pipelines.federation.home import results
from pipelines.federation.network.flare import names
from pipelines.federation.network.gate import plain
from pipelines.federation.run_spec import RunSpec
from pipelines.files import read_json

POLL = 0.5  # seconds


def write(
    folder: Path, run: RunSpec, terms: dict, clients: list[str], settings: Federation
) -> None:
    """The job's folder: a description, a configuration for the server and one for clients."""
    props = {names.RUN: run.names, names.TERMS: terms}
    least = len(clients) if settings.on_loss == "fail" else 1
    controller = {
        "server_obj_id": "_server",
        "sync_task_timeout": settings.start_timeout,
        "props": props,
    }
    meta = {
        "name": folder.name,
        "min_clients": least,
        "deploy_map": {"server": ["server"], "client": clients},
    }
    _json(folder / "meta.json", {**meta, "resource_spec": {}})
    workflows = [{"id": "controller", "path": names.CONTROLLER, "args": controller}]
    served = {
        "workflows": workflows,
        "components": [{"id": "_server", "path": names.SERVER, "args": {}}],
    }
    _json(folder / "server/config/config_fed_server.json", {"format_version": 2, **served})
    _json(folder / "client" / names.CLIENT_FILE, names.CLIENT_APP)


@contextmanager
def connected(kit: Path, timeout: float, check: Callable[[], None]) -> Iterator[Session]:
    """A session of the submitter's, once the server answers.

    Raises:
        UserError: it does not within `timeout` seconds.

    check: called at every look; raises where waiting is in vain.
    """
    session = _session(kit, timeout, check)
    try:
        yield session
    finally:
        session.close()


def _session(kit: Path, timeout: float, check: Callable[[], None]) -> Session:
    began = time.monotonic()
    while True:
        try:
            return new_secure_session(names.ADMIN, str(kit), timeout=5.0)
        except Exception as error:
            check()
            if time.monotonic() - began > timeout:
                raise UserError(
                    f"No server answers this kit within {timeout:g} s ({error})."
                ) from None
            time.sleep(POLL)


def carry(session: Session, job: Path, check: Callable[[], None]) -> Path:
    """Submits the job, waits for its end, and fetches its server's folder.

    check: called at every look; raises where waiting is in vain.
    """
    name = session.submit_job(str(job))
    try:
        while not _finished(session, name):
            check()
            time.sleep(POLL)
    except BaseException:
        session.abort_job(name)
        raise
    return Path(session.download_job_result(name)) / "workspace"


def _finished(session: Session, name: str, patience: int = 20) -> bool:
    """A server that does not answer for a moment is no reason to give a run up.

    Raises:
        UserError: it has not answered for `patience` attempts.
    """
    for _ in range(patience):
        try:
            return session.get_job_meta(name)["status"].startswith("FINISHED")
        except Exception as error:
            why = error
            time.sleep(POLL)
    raise UserError(
        f"The server does not answer any more ({why}). The run may still be going on there."
    )


def read(folder: Path) -> NetworkRun:
    """What the server left.

    Raises:
        UserError: it failed; in the server's words.
    """
    if not (folder / names.HISTORY).exists():
        why = (
            (folder / names.FAILED).read_text()
            if (folder / names.FAILED).exists()
            else "its server's log says why."
        )
        raise UserError(f"The federated run failed: {plain(why)}")
    told = read_json(folder / names.HISTORY)
    lost = {plain(client): plain(why) for client, why in told["lost"].items()}
    cost = {**told["cost"], **({"lost": lost} if lost else {})}
    return NetworkRun(
        History(results.load_models(folder / names.MODELS), told["curves"], cost), told["spent"]
    )


def _json(path: Path, content: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1))
