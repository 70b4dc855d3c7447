"""Leads a job in the server's job process: a federated run, or a joint release."""

import time
from pathlib import Path
from typing import ClassVar

from pipelines import config
from pipelines.config import Params
from pipelines.errors import UserError
from pipelines.federation.network.flare import server
from pipelines.federation.network.flare.engine import NetworkEngine
from pipelines.federation.network.flare.names import HISTORY
from pipelines.federation.network.flare.server import agree, connected
from pipelines.files import write_json
from pipelines.joint import coordinator, joint_run
from pipelines.joint.joint_run import JointRun
from pipelines.seal import roster_of


class Server(server.Server):
    """Leads one job. The run's name says of which kind it is. This class stands in kits."""

    PHASES: ClassVar[dict[str, str]] = {
        **server.Server.PHASES,
        "describe_together": "the parameters of all sides are compared",
        "ready_together": "each client asks its ledger and its store",
        "begin_together": "each ledger enters the release",
        "step_together": "the clients' vectors are summed",
        "take_together": "the clients take a sum",
        "sign_together": "each client signs the totals",
        "finish_together": "each client stores the generator",
    }

    def lead(self, folder: Path, names: dict, terms: dict) -> None:
        """Leads the job, and leaves its history in the job's folder."""
        if not joint_run.is_named(names):
            super().lead(folder, names, terms)
            return
        params = config.load()
        run = joint_run.named(params, names)
        self.engine = connected(run.carried(params), {})
        _release(folder, params, run, terms, self.engine)


def _release(
    folder: Path, params: Params, run: JointRun, terms: dict, engine: NetworkEngine
) -> None:
    """Has the clients make a joint release, and writes what it took.

    Args:
        folder: The job's folder at the server.
        params: The server's parameters.
        run: The release.
        terms: The submitter's terms of it.
        engine: Reaches the clients.
    """
    began = time.monotonic()
    agree(engine, "describe_together", run.names, terms, run.terms(params))
    roster = roster_of(params)
    if set(roster.names) != set(params.clients):
        raise UserError("The clients of the server's params.yaml must be those of its roster.")
    outcome = coordinator.release(run, params, engine.ask_each, engine.lost)
    content = {
        "bytes_up": outcome.traffic.up,
        "bytes_down": outcome.traffic.down,
        "seconds": time.monotonic() - began,
        "lost": outcome.gone,
    }
    write_json(folder / HISTORY, content)
