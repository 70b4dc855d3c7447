"""A run over NVFlare from a stage's point of view: what came of it, wherever the clients are."""

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


def run_over_network(params: Params, run: RunSpec) -> NetworkRun:
    """All rounds, by server and clients that run elsewhere (`remote`) or are started here for it (`local`).

    Raises:
        UserError: they do not come together in time, one is lost, or the run fails.
    """
    work = (WORK / "-".join(filter(None, [run.dataset, run.method, run.generator]))).resolve()
    if params.federation.mode == "local":
        with network(params, *laid_out(params, [run], work), work) as running:
            return running.carry(run)
    if KIT not in os.environ:
        raise UserError(
            f"federation.mode is 'remote': {KIT} must name the folder of the submitter's start-up kit."
        )
    return _read(
        submitted(params, run, run.terms(params), Path(os.environ[KIT]), work, lambda: None)
    )


class Network(NamedTuple):
    """Server and clients on this machine, for as many runs as one likes."""

    params: Params
    kits: Path
    work: Path
    running: dict[str, processes.Started]

    def carry(self, run: RunSpec) -> NetworkRun:
        return _read(self.folder(run, run.terms(self.params)))

    def folder(self, run: RunSpec, terms: dict) -> Path:
        """What the server left."""
        return submitted(self.params, run, terms, self.kits / ADMIN, self.work, self.check)

    def check(self) -> None:
        """
        Raises:
            UserError: the server has ended, or a client and losses are failures.
        """
        for name, process in self.running.items():
            if process.dead and (name == HOST or self.params.federation.on_loss == "fail"):
                raise UserError(
                    f"The process of {name} has ended before the run did. What it said: {process.log}"
                )


def laid_out(params: Params, runs: list[RunSpec], work: Path) -> tuple[Path, dict[str, Path]]:
    """(the folder of kits, {participant: its working folder with what it reads in these runs}), in a fresh `work`."""
    processes.end(work / "homes")  # of a stage that was killed
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, mode=0o700)  # keys, and copies of records
    clients = sorted(params.clients)
    kits = provision(work / "kits", clients, HOST, processes.free_ports(2))
    homes = {HOST: _home(work, HOST, [paths.prepared(run.dataset) / "public.npz" for run in runs])}
    return kits, homes | {
        client: _home(work, client, [_own(run, client) for run in runs]) for client in clients
    }


@contextmanager
def network(params: Params, kits: Path, homes: dict[str, Path], work: Path) -> Iterator[Network]:
    """Everybody's processes, while the block runs. Then keys and copies are removed, and where all went well the logs.
    Each client enters noisy runs in its own ledger, which is where the stages have it."""
    ledgers = {paths.LEDGERS: str(paths.ledgers().resolve()), LOCAL: "1"}
    try:
        with processes.started(kits, homes, work / "logs", ledgers) as running:
            yield Network(params, kits, work, running)
    finally:
        shutil.rmtree(work / "kits")
        shutil.rmtree(work / "homes")
    shutil.rmtree(work)


def submitted(
    params: Params, run: RunSpec, terms: dict, kit: Path, work: Path, check: Callable[[], None]
) -> Path:
    """The folder that the server left, fetched.

    check: called at every look; raises where waiting is in vain.
    """
    settings, clients = params.federation, sorted(params.clients)
    with jobs.connected(kit, settings.start_timeout, check) as session:
        _gather(session, clients, settings.start_timeout, check)
        jobs.write(work / "job", run, terms, clients, settings)
        return jobs.carry(session, work / "job", check)


def _read(folder: Path) -> NetworkRun:
    found = jobs.read(folder)
    for client, why in found.history.cost.get("lost", {}).items():
        print(f"  {client} was lost on the way, and the run went on without it: {why}")
    return found


def _gather(
    session: Session, clients: list[str], timeout: float, check: Callable[[], None]
) -> None:
    """Waits until all clients are there.

    Raises:
        UserError: they are not within `timeout` seconds.
    """
    until = time.monotonic() + timeout
    while missing := set(clients) - {
        client.name for client in session.get_system_info().client_info
    }:
        check()
        if time.monotonic() > until:
            raise UserError(
                f"After {timeout:g} s these clients have not come: {', '.join(sorted(missing))}."
            )
        time.sleep(jobs.POLL)


def _own(run: RunSpec, client: str) -> Path:
    """What a client reads in this run: its train part, or its exported set; nothing of anybody else's."""
    if run.noisy:
        return paths.shards(run.dataset) / client / "train.npz"
    return paths.synthetic(run.dataset, client, run.generator)


def _home(work: Path, name: str, files: list[Path]) -> Path:
    """A working folder with the parameters and copies of what its owner has."""
    home = work / "homes" / name
    for path in dict.fromkeys([*all_files(Path()), *files]):
        if path.exists():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if path.is_dir() else shutil.copy)(path, home / path)
    return home
