"""What a client answers over NVFlare: thin functions before `network.client`, which has the rules.

The object lives in the job process of one client, whose working folder is that client's: its params.yaml, its exported
sets, its records, its ledger. It takes calls of the job's server alone, and whatever goes wrong inside, nothing is said
of it but a refusal's own words: NVFlare would send an exception's text and traceback, in which records may stand.
"""

import functools
import logging
import os
import threading
from collections.abc import Callable

from nvflare.collab import collab

from pipelines import config
from pipelines.config import Params
from pipelines.errors import UserError
from pipelines.federation.core.messages import Payload
from pipelines.federation.network.client import exported, gate
from pipelines.federation.network.flare.names import HOME, SERVERS_CELL
from pipelines.federation.network.gate import Gate, Refused, plain
from pipelines.federation.network.server import shares_sets
from pipelines.federation.run_spec import RunSpec, named

log = logging.getLogger("fedlens.client")
NOT_ALLOWED = (
    "its own parameters, records, cards or ledger do not allow it; why stands in the client's log"
)
FAILED = "it failed; why stands in the client's log"


def told(function: Callable) -> Callable:
    """The answer, or {"refused": why}. Only a refusal's own words leave: what a ledger or a file says of the client is
    the client's, and of anything else the caller learns that it failed."""

    @functools.wraps(function)
    def wrapped(self, *args, **kwargs) -> dict:
        try:
            if collab.caller != SERVERS_CELL:
                raise Refused("only the server of this job is answered")
            return function(self, *args, **kwargs)
        except Refused as refusal:
            why = plain(str(refusal))
            log.warning("%s: refused: %s", function.__name__, why)
            return {"refused": why}
        except UserError as error:
            log.warning("%s: refused: %s", function.__name__, plain(str(error)))
            return {"refused": NOT_ALLOWED}
        except Exception:
            log.exception("%s failed", function.__name__)
            return {"refused": FAILED}

    return wrapped


def known(params: Params, names: dict) -> RunSpec:
    """
    Raises:
        Refused: these parameters know no such run. The words are the server's own names.
    """
    try:
        return named(params, names)
    except UserError as error:
        raise Refused(str(error)) from None


class Client:
    """One job's. `begin` once, then `update` each round; `alive` at any time."""

    def __init__(self):
        os.chdir(os.environ[HOME])
        self.run: RunSpec | None = None
        self.gate: Gate | None = None
        self.lock = threading.Lock()  # calls come in threads

    @collab.publish
    @told
    def describe(self, names: dict) -> dict:
        """{"terms": digests of what both sides must have alike}."""
        params = config.load()
        return {"terms": known(params, names).terms(params)}

    @collab.publish
    @told
    def exported(self, names: dict) -> dict:
        """The client's released set, {"images", "labels"}, where its card has a formal guarantee."""
        run = known(config.load(), names)
        if not shares_sets(run):
            raise Refused("in this run no client sees another's set")
        (data,) = exported(run, collab.site_name).values()
        return {"images": data.images, "labels": data.labels}

    @collab.publish
    @told
    def begin(self, names: dict, pool: dict) -> dict:
        """Makes the client ready for the first round; a noisy run's budget is spent then. Once per job."""
        with self.lock:
            if self.gate:
                raise Refused("this job has begun: another run needs a job of its own")
            params = config.load()
            self.run = known(params, names)
            self.gate = gate(params, self.run, collab.site_name, pool)
        log.info("%s: ready", self.run)
        return {}

    @collab.publish
    @told
    def update(self, arrays: dict, scalars: dict) -> dict:
        """A round: {"arrays", "scalars"}, or {} where the client has left."""
        with self.lock:
            if not self.gate:
                raise Refused("a round before the run has begun")
            answer = self.gate.answer(Payload(arrays, scalars))
        return {} if answer is None else {"arrays": answer.arrays, "scalars": answer.scalars}

    @collab.publish
    @told
    def end(self) -> dict:
        """{"scalars": what a noisy run's account came to}. No round follows."""
        with self.lock:
            if not self.gate:
                raise Refused("an end before the run has begun")
            return {"scalars": self.gate.end()}

    @collab.publish
    @told
    def alive(self) -> dict:
        return {}
