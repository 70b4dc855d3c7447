"""What NVFlare runs in the job process of the server: the one loop, over the network, and its history into the job's
folder."""

import logging
import os
from pathlib import Path

from nvflare.collab import collab

from pipelines import config
from pipelines.config import Params
from pipelines.errors import UserError
from pipelines.federation.home import results
from pipelines.federation.network.flare.engine import Carrier, Lost
from pipelines.federation.network.flare.names import FAILED, HISTORY, HOME, MODELS, RUN, TERMS
from pipelines.federation.network.gate import SPENT, Refused, check_set, check_told
from pipelines.federation.network.server import bounds, lead, shares_sets
from pipelines.federation.run_spec import RunSpec, named
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
            write_text(
                folder / FAILED, f"{type(error).__name__} at the server, whose log says more"
            )
            raise


def _run(folder: Path, names: dict, terms: dict) -> None:
    params = config.load()
    run, settings = named(params, names), params.federation
    proxies = {proxy.name: proxy for proxy in collab.clients}
    missing = sorted(set(params.clients) - set(proxies))
    if missing and (settings.on_loss == "fail" or len(missing) == len(params.clients)):
        raise UserError(f"Of the clients of this run, {', '.join(missing)} are not there.")
    there = {client: proxies[client] for client in sorted(set(params.clients) - set(missing))}
    carrier = Carrier(there, settings, bounds(params, run))
    carrier.lost.update(dict.fromkeys(missing, "the start: it was not there"))
    _agree("the submitter", terms, run.terms(params))
    for client, answer in carrier.ask("describe", names=names):
        _agree(client, answer.get("terms"), run.terms(params))
    pool = _pool(params, run, carrier) if shares_sets(run) else {}
    carrier.ask("begin", names=names, pool=pool)
    history = lead(params, run, list(carrier.clients), carrier)
    for own in pool.values():  # every image up once and down to all, a byte per pixel
        history.cost["bytes_up"] += own["images"].nbytes
        history.cost["bytes_down"] += own["images"].nbytes * len(pool)
    lost = dict(carrier.lost)  # a client that is lost now has done its part
    results.save_models(folder / MODELS, history.models)
    told = {"curves": history.curves, "cost": history.cost, "lost": lost, "spent": _spent(carrier)}
    write_json(folder / HISTORY, told)


def _pool(params: Params, run: RunSpec, carrier: Carrier) -> dict[str, dict]:
    """{client: its exported set}, without those of clients that send none. They would make all others refuse the pool.

    Raises:
        Lost: by `on_loss: fail`.
    """
    profile, pool = params.profiles[run.dataset], {}
    for client, content in carrier.ask("exported", names=run.names):
        try:
            check_set(content, (profile.images, *profile.shape), profile.classes)
        except Refused as error:
            carrier.lose_for(client, error)
        else:
            pool[client] = content
    return pool


def _spent(carrier: Carrier) -> dict[str, dict]:
    """{client: what its account came to}, of those that still say so."""
    spent = {}
    try:
        answers = carrier.ask("end")
    except Lost as error:
        log.warning("after the last round: %s", error)
        return {}
    for client, answer in answers:
        figures = answer.get("scalars", {})
        try:
            check_told(figures, SPENT)
        except Refused as error:
            log.warning("after the last round, of %s: %s", client, error)
        else:
            # a run without noise has none
            if figures:
                spent[client] = figures
    return spent


def _agree(who: str, theirs: object, ours: dict) -> None:
    """
    Raises:
        UserError: a client or the submitter has other parameters for this run.
    """
    theirs = theirs if isinstance(theirs, dict) else {}
    if other := sorted(name for name in ours if theirs.get(name) != ours[name]):
        raise UserError(
            f"{who} and the server have different parameters for this run: {', '.join(other)}."
        )
