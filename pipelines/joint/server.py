"""Leads a job in the server's job process: a federated run, or a joint release."""

import time
from pathlib import Path

from pipelines import config
from pipelines.config import Params
from pipelines.errors import UserError
from pipelines.federation.network.flare import server
from pipelines.federation.network.flare.names import HISTORY
from pipelines.federation.network.flare.server import agree, connected
from pipelines.files import write_json
from pipelines.joint import coordinator, joint_run
from pipelines.joint.joint_run import JointRun, roster_of


class Server(server.Server):
    """Leads one job. The run's name says of which kind it is. This class stands in kits."""

    def lead(self, folder: Path, names: dict, terms: dict) -> None:
        """Leads the job, and leaves its history in the job's folder."""
        if not joint_run.is_named(names):
            super().lead(folder, names, terms)
            return
        params = config.load()
        _release(folder, params, joint_run.named(params, names), terms)


def _release(folder: Path, params: Params, run: JointRun, terms: dict) -> None:
    """Has the clients make a joint release, and writes what it took.

    Args:
        folder: The job's folder at the server.
        params: The server's parameters.
        run: The release.
        terms: The submitter's terms of it.
    """
    began = time.monotonic()
    # nobody may drop out, so that whoever is lost ends the release with the reason
    federation = params.federation.model_copy(update={"on_loss": "fail"})
    engine = connected(params.model_copy(update={"federation": federation}), {})
    agree(engine, "describe_together", run.names, terms, run.terms(params))
    roster = roster_of(params)
    if set(roster.names) != set(params.clients):
        raise UserError("The clients of the server's params.yaml must be those of its roster.")
    traffic = coordinator.release(run.planned(params), run.names, roster, engine.ask_each)
    content = {
        "bytes_up": traffic.up,
        "bytes_down": traffic.down,
        "seconds": time.monotonic() - began,
    }
    write_json(folder / HISTORY, content)
