"""Runs a federation over NVFlare for a stage, wherever the clients are."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from nvflare.fuel.flare_api.flare_api import Session

from pipelines import paths
from pipelines.config import Params
from pipelines.config.places import all_files
from pipelines.errors import UserError
from pipelines.federation.core.rounds import NetworkRun
from pipelines.federation.network.client import LOCAL
from pipelines.federation.network.flare import jobs, processes
from pipelines.federation.network.flare.kits import provision
from pipelines.federation.network.flare.names import ADMIN, KIT
from pipelines.federation.run_spec import RunSpec

WORK = paths.SCRATCH / "nvflare"
HOST = "localhost"
LOGS_ELSEWHERE = (
    "Its log is {job}/log.txt in the kit of each client and, until it ends, of the server."
)


def run_over_network(params: Params, run: RunSpec) -> NetworkRun:
    """Runs all rounds, by server and clients that run elsewhere or are started here.

    They run elsewhere in the mode `remote`. They are started for this run in the mode `local`.

    Raises:
        UserError: They do not come together in time, one is lost, or the run fails.
    """
    work = _work_of(run.names)
    if params.federation.mode == "local":
        kits, homes = lay_out(params, [run], work)
        with network(params, kits, homes, work) as local_network:
            return local_network.execute(run)
    return _read(run_elsewhere(params, run.names, run.terms(params)), params, run)


def run_elsewhere(params: Params, run: dict[str, str], terms: dict) -> Path:
    """Runs a job whose server and clients run elsewhere, and returns the folder that the server left.

    Args:
        params: The submitter's parameters.
        run: The run's name.
        terms: The submitter's terms of it.

    Raises:
        UserError: No kit is named, or they do not come together in time.
    """
    if KIT not in os.environ:
        raise UserError(
            f"federation.mode is 'remote': {KIT} must name the folder of the submitter's start-up "
            "kit."
        )
    kit = Path(os.environ[KIT])
    folder = submit_run(params, run, terms, kit, _work_of(run), LOGS_ELSEWHERE, lambda: None)
    log = folder / "log.txt"
    # a job that the server could not begin has none
    if log.exists():
        jobs.say(f"The server's log has come with its results: {log}")
    return folder


def _work_of(run: dict[str, str]) -> Path:
    """Returns the folder for the files of a run, by the run's name."""
    return (WORK / "-".join(filter(None, run.values()))).resolve()


class Network(NamedTuple):
    """Holds the server and clients on this machine, for any number of runs.

    Attributes:
        params: The parameters.
        kits: The folder of all kits.
        work: The folder of this network.
        running: {participant: its process}.
    """

    params: Params
    kits: Path
    work: Path
    running: dict[str, processes.Participant]

    def execute(self, run: RunSpec) -> NetworkRun:
        """Runs all rounds of a run."""
        return _read(self.folder(run, run.terms(self.params)), self.params, run)

    def folder(self, run: RunSpec, terms: dict) -> Path:
        """Runs all rounds of a run, and returns the folder that the server left.

        Args:
            run: The run.
            terms: The submitter's terms of it.
        """
        logs = f"The logs lie in {self.work / 'logs'} until all went well."
        kit = self.kits / ADMIN
        return submit_run(self.params, run.names, terms, kit, self.work, logs, self.check)

    def check(self) -> None:
        """Checks that the processes still run.

        Raises:
            UserError: The server has ended, or a client has and `on_loss` is `fail`.
        """
        for name, process in self.running.items():
            if process.dead and (name == HOST or self.params.federation.on_loss == "fail"):
                raise UserError(
                    f"The process of {name} has ended before the run did. What it said: "
                    f"{process.log}"
                )


def lay_out(params: Params, runs: list[RunSpec], work: Path) -> tuple[Path, dict[str, Path]]:
    """Makes a fresh folder with kits, and with all that the participants read in these runs.

    Args:
        params: The parameters.
        runs: The runs.
        work: The folder. What a killed stage left in it is ended and removed.

    Returns:
        The folder of the kits, and {participant: its working folder}.
    """
    processes.end(work / "homes")
    shutil.rmtree(work, ignore_errors=True)
    # it will hold keys, and copies of records
    work.mkdir(parents=True, mode=0o700)
    clients = sorted(params.clients)
    kits = provision(work / "kits", clients, HOST, processes.free_ports(2))
    public_files = [paths.prepared(run.dataset) / "public.npz" for run in runs]
    homes = {HOST: _make_home(work, HOST, public_files)}
    for client in clients:
        homes[client] = _make_home(work, client, [_client_data(run, client) for run in runs])
    return kits, homes


@contextmanager
def network(params: Params, kits: Path, homes: dict[str, Path], work: Path) -> Iterator[Network]:
    """Runs everybody's processes while the block runs.

    Keys and copies of records are removed then. The logs are removed if all went well. Each client
    enters noisy runs in its own ledger, at the place where the stages have it.

    Args:
        params: The parameters.
        kits: The folder of all kits.
        homes: {participant: its working folder}.
        work: The folder that `lay_out` made.
    """
    ledgers = {paths.LEDGERS: str(paths.ledgers().resolve()), LOCAL: "1"}
    try:
        with processes.started(kits, homes, work / "logs", ledgers) as running:
            yield Network(params, kits, work, running)
    finally:
        shutil.rmtree(work / "kits")
        shutil.rmtree(work / "homes")
    shutil.rmtree(work)


def submit_run(
    params: Params,
    run: dict[str, str],
    terms: dict,
    kit: Path,
    work: Path,
    logs: str,
    check: Callable[[], None],
) -> Path:
    """Submits a run once all clients are there, waits for its end, and fetches the server's folder.

    Args:
        params: The submitter's parameters.
        run: The run's name.
        terms: The submitter's terms of it.
        kit: The submitter's kit.
        work: The folder for the job.
        logs: A sentence about where the logs lie, with "{job}" for the job's name.
        check: Is called at every look, and raises if it is in vain to wait.

    Returns:
        The fetched folder.

    Raises:
        UserError: The server or a client is not there in time.
    """
    settings = params.federation
    clients = sorted(params.clients)
    with jobs.connected(kit, settings.start_timeout, check) as session:
        _wait_for_clients(session, clients, settings.start_timeout, check)
        jobs.write(work / "job", run, terms, clients, settings)
        return jobs.submit_and_fetch(session, work / "job", logs, check)


def _read(folder: Path, params: Params, run: RunSpec) -> NetworkRun:
    """Returns what a run came to, and prints which clients it lost."""
    result = jobs.read(folder, params, run)
    for client, why in result.history.cost.get("lost", {}).items():
        print(f"  {client} was lost on the way, and the run went on without it: {why}")
    return result


def _wait_for_clients(
    session: Session, clients: list[str], timeout: float, check: Callable[[], None]
) -> None:
    """Waits until all clients are there, and tells of each when it comes.

    Args:
        session: The submitter's session.
        clients: The names of the clients.
        timeout: Seconds to wait.
        check: Is called at every look, and raises if it is in vain to wait.

    Raises:
        UserError: A client is not there in time.
    """
    until = time.monotonic() + timeout
    told = set()
    print(f"  The server answers. Waiting for {len(clients)} clients: {', '.join(clients)}.")
    while True:
        missing = _missing(session, clients)
        for client in sorted(set(clients) - missing - told):
            told.add(client)
            print(f"  {client} is there ({len(told)} of {len(clients)}).", flush=True)
        if not missing:
            return
        check()
        if time.monotonic() > until:
            raise UserError(
                f"After {timeout:g} s these clients have not come: {', '.join(sorted(missing))}."
            )
        time.sleep(jobs.POLL)


def _missing(session: Session, clients: list[str]) -> set[str]:
    """Returns the clients that are not connected to the server."""
    connected = session.get_system_info().client_info
    return set(clients) - {client.name for client in connected}


def _client_data(run: RunSpec, client: str) -> Path:
    """Returns the only data that a client reads in a run: its train part, or its exported set."""
    if run.noisy:
        return paths.shards(run.dataset) / client / "train.npz"
    return paths.synthetic(run.dataset, client, run.generator)


def _make_home(work: Path, name: str, files: list[Path]) -> Path:
    """Makes a working folder with the parameters and copies of its owner's files, if they exist."""
    home = work / "homes" / name
    for path in dict.fromkeys([*all_files(Path()), *files]):
        if path.exists():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, home / path)
    return home
