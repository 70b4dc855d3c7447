"""Runs a federation's rounds in the server's job process, and writes their history."""

import logging
import os
from pathlib import Path
from typing import ClassVar

from nvflare.collab import collab
from nvflare.private.fed.server.server_commands import ServerCommands

from pipelines import config
from pipelines.config import Params
from pipelines.datasets import exports
from pipelines.datasets.exports import Export
from pipelines.datasets.labelled_images import Images, without_ids
from pipelines.errors import UserError
from pipelines.federation.core.rounds import History
from pipelines.federation.engine import server_gathers_sets
from pipelines.federation.home import results
from pipelines.federation.network.flare.engine import Lost, NetworkEngine
from pipelines.federation.network.flare.names import (
    FAILED,
    HISTORY,
    HOME,
    MODELS,
    PROGRESS,
    RUN,
    SETS,
    TERMS,
)
from pipelines.federation.network.gate import (
    SPENT,
    Bounds,
    Refused,
    check_card,
    check_scalars,
    check_set,
)
from pipelines.federation.network.server import (
    bounds,
    is_led_alone,
    lead,
    lead_alone,
    shares_sets,
)
from pipelines.federation.run_spec import RunSpec, named
from pipelines.files import write_json, write_text

log = logging.getLogger("fedlens.server")

# The phase in which no client is called.
ALONE = "alone"


class Server:
    """Leads one job.

    The run's name and the submitter's terms come with the job. All else comes from this server's
    own folder.

    Attributes:
        PHASES: What a call of the clients is for, in the words of the submitter's terminal.
    """

    PHASES: ClassVar[dict[str, str]] = {
        "describe": "the parameters of all sides are compared",
        "exported": "the clients hand in their sets",
        ALONE: "the server trains on the sets",
        "begin": "the clients make ready",
        "end": "the clients say what they spent",
    }

    def __init__(self):
        os.chdir(os.environ[HOME])
        self.engine: NetworkEngine | None = None

    @collab.main
    def main(self) -> None:
        """Runs all rounds, and leaves either their history or the reason of a failure."""
        folder = Path(collab.workspace.get_run_dir(collab.fl_ctx.get_job_id()))
        # in the place of the answer that `server_worker` gives until now
        ServerCommands.app_cmd_registry.pop(PROGRESS, None)
        collab.fl_ctx.get_engine().register_app_command(PROGRESS, self.progress)
        try:
            self.lead(folder, collab.get_app_prop(RUN), collab.get_app_prop(TERMS))
        except (UserError, Lost) as error:
            # the submitter reads the sentence there
            write_text(folder / FAILED, str(error))
            raise
        except Exception as error:
            write_text(
                folder / FAILED, f"{type(error).__name__} at the server, whose log says more"
            )
            raise

    def lead(self, folder: Path, names: dict, terms: dict) -> None:
        """Runs all rounds and writes models and history into the job's folder.

        Args:
            folder: The job's folder at the server.
            names: The run's name, as `RunSpec.names`.
            terms: The submitter's `RunSpec.terms`.
        """
        params = config.load()
        run = named(params, names)
        self.engine = connected(params, bounds(params, run))
        if not is_led_alone(params, run):
            self.engine.rounds = run.settings(params).rounds
        _run(folder, params, run, terms, self.engine)

    def progress(self, *_of_nvflare) -> dict[str, str]:
        """Returns {"phase": the phase of this job}; "" before the clients are there."""
        phase = self.engine.phase if self.engine else ""
        if phase.startswith("round "):
            return {"phase": f"{phase} of {self.engine.rounds}"}
        return {"phase": self.PHASES.get(phase, phase)}


def _run(folder: Path, params: Params, run: RunSpec, terms: dict, engine: NetworkEngine) -> None:
    """Runs all rounds of a run. Further arguments are those of `Server.lead`."""
    # 1. all sides have the same parameters
    agree(engine, "describe", run.names, terms, run.terms(params))
    # 2. the clients hand in their sets, where the server gathers them
    handed_in = _pool(params, run, engine) if server_gathers_sets(params, run) else {}
    sets = {client: export.images for client, export in handed_in.items()}
    # 3. all rounds: at the server alone, or with the clients, which first receive each other's sets
    # where the algorithm shares them
    if is_led_alone(params, run):
        engine.phase = ALONE
        history = lead_alone(params, run, sets)
        lost = dict(engine.lost)
        spent = {}
    else:
        pool = _as_message(sets) if shares_sets(run) else {}
        engine.ask("begin", names=run.names, pool=pool)
        history = lead(params, run, list(engine.clients), engine, sets)
        _add_cost_of_sets(history, sets, len(pool))
        # a client that is lost after this has done its part
        lost = dict(engine.lost)
        spent = _spent(engine)
    results.save_models(folder / MODELS, history.models)
    for client, export in handed_in.items():
        exports.save(folder / SETS / client, export)
    content = {"curves": history.curves, "cost": history.cost, "lost": lost, "spent": spent}
    write_json(folder / HISTORY, content)


def connected(params: Params, ranges: Bounds) -> NetworkEngine:
    """Returns an engine of the run's clients that take part in this job.

    Args:
        params: The server's parameters.
        ranges: The scalars that each client sends in each round, with their ranges.

    Raises:
        UserError: A client is missing and `on_loss` is `fail`, or all are missing.
    """
    settings = params.federation
    proxies = {proxy.name: proxy for proxy in collab.clients}
    missing = sorted(set(params.clients) - set(proxies))
    if missing and (settings.on_loss == "fail" or len(missing) == len(params.clients)):
        raise UserError(f"Of the clients of this run, {', '.join(missing)} are not there.")
    present = {}
    for client in sorted(set(params.clients) - set(missing)):
        present[client] = proxies[client]
    engine = NetworkEngine(present, settings, ranges)
    engine.lost.update(dict.fromkeys(missing, "the start: it was not there"))
    return engine


def _as_message(sets: dict[str, Images]) -> dict[str, dict]:
    """Returns the sets as `network.client.gate` takes them."""
    message = {}
    for client, data in sets.items():
        message[client] = {"images": data.images, "labels": data.labels}
    return message


def _add_cost_of_sets(history: History, sets: dict[str, Images], receivers: int) -> None:
    """Adds the bytes of the gathered sets to the cost, a byte per pixel and channel.

    Args:
        history: Its cost is changed.
        sets: The gathered sets, each of which went up once.
        receivers: The number of clients that received them all.
    """
    for data in sets.values():
        history.cost["bytes_up"] += data.images.nbytes
        history.cost["bytes_down"] += data.images.nbytes * receivers


def _pool(params: Params, run: RunSpec, engine: NetworkEngine) -> dict[str, Export]:
    """Returns {client: its exported set and card}, without the clients whose answer is no such set.

    One bad set would make all other clients refuse the pool.

    Raises:
        Lost: With `on_loss: fail`.
    """
    profile = params.profiles[run.dataset]
    pool = {}
    for client, content in engine.ask("exported", names=run.names):
        try:
            check_set(content, (profile.images, *profile.shape), profile.classes)
            card = check_card(content.get("card"))
        except Refused as error:
            engine.lose_for(client, error)
        else:
            pool[client] = Export(without_ids(content["images"], content["labels"]), card)
    return pool


def _spent(engine: NetworkEngine) -> dict[str, dict]:
    """Returns {client: what its account came to}, for the clients that still report it."""
    spent = {}
    try:
        answers = engine.ask("end")
    except Lost as error:
        log.warning("after the last round: %s", error)
        return {}
    for client, answer in answers:
        figures = answer.get("scalars", {})
        try:
            check_scalars(figures, SPENT)
        except Refused as error:
            log.warning("after the last round, of %s: %s", client, error)
        else:
            # a run without noise has none
            if figures:
                spent[client] = figures
    return spent


def agree(engine: NetworkEngine, call: str, names: dict, terms: object, ours: dict) -> None:
    """Checks that the submitter and each client have the same parameters for a run.

    Args:
        engine: Reaches the clients.
        call: The method of a client that returns its terms.
        names: The run's name.
        terms: The submitter's terms.
        ours: The server's.

    Raises:
        UserError: A client or the submitter has other parameters.
    """
    _agree("the submitter", terms, ours)
    for client, answer in engine.ask(call, names=names):
        _agree(client, answer.get("terms"), ours)


def _agree(who: str, theirs: object, ours: dict) -> None:
    """Checks that another side has the same parameters for this run.

    Raises:
        UserError: A client or the submitter has other parameters.
    """
    theirs = theirs if isinstance(theirs, dict) else {}
    different = sorted(name for name in ours if theirs.get(name) != ours[name])
    if different:
        raise UserError(
            f"{who} and the server have different parameters for this run: {', '.join(different)}."
        )
