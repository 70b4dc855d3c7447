"""What NVFlare runs in the job process of the server: the one loop, over the network, and its history into the job's
folder."""

import logging
import os
from pathlib import Path

from nvflare.collab import collab

from pipelines import config
from pipelines.errors import UserError
from pipelines.federation import outcome
from pipelines.federation.engines.flare.carrier import Carrier, Lost
from pipelines.federation.engines.flare.names import FAILED, HISTORY, HOME, MODELS, RUN, TERMS
from pipelines.federation.leading import lead, shares_sets
from pipelines.federation.runs import named
from pipelines.files import write_json, write_text

log = logging.getLogger("fedlens.server")


class Server:
    """One job's. The run's name and the submitter's terms come with the job; all else from this server's folder."""

    def __init__(self):
        os.chdir(os.environ[HOME])

    @collab.main
    def main(self) -> None:
        folder = Path(collab.workspace.get_run_dir(collab.fl_ctx.get_job_id()))
        try:
            _run(folder, collab.get_app_prop(RUN), collab.get_app_prop(TERMS))
        except (UserError, Lost) as error:  # the submitter reads it there
            write_text(folder / FAILED, str(error))
            raise
        except Exception as error:
            write_text(folder / FAILED, f"{type(error).__name__} at the server, whose log says more")
            raise


def _run(folder: Path, names: dict, terms: dict) -> None:
    params = config.load()
    run, settings = named(params, names), params.federation
    proxies = {proxy.name: proxy for proxy in collab.clients}
    missing = sorted(set(params.clients) - set(proxies))
    if missing and (settings.on_loss == "fail" or len(missing) == len(params.clients)):
        raise UserError(f"Of the clients of this run, {', '.join(missing)} are not there.")
    carrier = Carrier({client: proxies[client] for client in sorted(set(params.clients) - set(missing))}, settings)
    carrier.lost.update(dict.fromkeys(missing, "the start: it was not there"))
    _agree("the submitter", terms, run.terms(params))
    for client, answer in carrier.ask("describe", names=names):
        _agree(client, answer["terms"], run.terms(params))
    pool = dict(carrier.ask("exported", names=names)) if shares_sets(run) else {}
    carrier.ask("begin", names=names, pool=pool)
    history = lead(params, run, list(carrier.clients), carrier)
    for own in pool.values():  # every image up once and down to all, a byte per pixel
        history.cost["bytes_up"] += own["images"].nbytes
        history.cost["bytes_down"] += own["images"].nbytes * len(pool)
    lost = dict(carrier.lost)  # a client that is lost now has done its part
    outcome.save_models(folder / MODELS, history.models)
    told = {"curves": history.curves, "cost": history.cost, "lost": lost, "spent": _spent(carrier)}
    write_json(folder / HISTORY, told)


def _spent(carrier: Carrier) -> dict[str, dict]:
    """{client: what its account came to}, of those that still say so."""
    try:
        return {client: answer["scalars"] for client, answer in carrier.ask("end") if answer.get("scalars")}
    except Lost as error:
        log.warning("after the last round: %s", error)
        return {}


def _agree(who: str, theirs: dict, ours: dict) -> None:
    """
    Raises:
        UserError: a client or the submitter has other parameters for this run.
    """
    if other := sorted(name for name in ours if theirs.get(name) != ours[name]):
        raise UserError(f"{who} and the server have different parameters for this run: {', '.join(other)}.")
