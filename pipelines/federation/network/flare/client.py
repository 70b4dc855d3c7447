"""Answers at a client over NVFlare: thin functions before `network.client`, which has the rules.

The object lives in the job process of one client. The working folder of that process is the
client's: its params.yaml, its exported sets, its records, its ledger. The object takes calls of the
job's server alone. If anything goes wrong inside, it sends a refusal's own words and nothing else.
NVFlare would send an exception's text and traceback, in which records may stand.
"""

import functools
import json
import logging
import os
import threading
from collections.abc import Callable

from nvflare.collab import collab

from pipelines import config
from pipelines.config import Params
from pipelines.datasets import exports
from pipelines.errors import UserError
from pipelines.federation.core.messages import Payload
from pipelines.federation.engine import server_gathers_sets
from pipelines.federation.network.client import exported, gate
from pipelines.federation.network.flare.names import HOME, SERVERS_CELL
from pipelines.federation.network.gate import Gate, Refused, plain
from pipelines.federation.run_spec import RunSpec, named

log = logging.getLogger("fedlens.client")
NOT_ALLOWED = (
    "its own parameters, records, cards or ledger do not allow it; why stands in the client's log"
)
FAILED = "it failed; why stands in the client's log"


def answer_or_refusal(function: Callable) -> Callable:
    """Returns a method that answers the job's server, or refuses with {"refused": why}.

    Only a refusal's own words leave. What a ledger or a file says of the client stays in the
    client's log. For any other error the caller learns only that the method failed.
    """

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


def find_run(params: Params, names: dict) -> RunSpec:
    """Returns the run that a server names.

    Raises:
        Refused: These parameters know no such run. The words are the server's own names.
    """
    try:
        return named(params, names)
    except UserError as error:
        raise Refused(str(error)) from None


class Client:
    """Serves one job: `begin` once, then `update` each round, and `alive` at any time."""

    def __init__(self):
        os.chdir(os.environ[HOME])
        self.run: RunSpec | None = None
        self.gate: Gate | None = None
        # NVFlare makes each call in a thread of its own
        self.lock = threading.Lock()

    @collab.publish
    @answer_or_refusal
    def describe(self, names: dict) -> dict:
        """Returns {"terms": digests of what both sides must have alike}."""
        params = config.load()
        return {"terms": find_run(params, names).terms(params)}

    @collab.publish
    @answer_or_refusal
    def exported(self, names: dict) -> dict:
        """Returns the client's released set, if its card has a formal guarantee.

        Returns:
            {"images": uint8 [n, H, W, C], "labels": int64 [n], "card": the text of card.json}.
        """
        params = config.load()
        run = find_run(params, names)
        if not server_gathers_sets(params, run):
            raise Refused("in this run no set leaves its client")
        (data,) = exported(run, collab.site_name).values()
        card = exports.card(run.dataset, collab.site_name, run.generator)
        return {"images": data.images, "labels": data.labels, "card": json.dumps(card)}

    @collab.publish
    @answer_or_refusal
    def begin(self, names: dict, pool: dict) -> dict:
        """Makes the client ready for the first round, once per job.

        The budget of a noisy run is spent then.

        Args:
            names: The run's name, as `RunSpec.names`.
            pool: {client: its exported set}, as `network.client.gate` takes it.
        """
        with self.lock:
            if self.gate:
                raise Refused("this job has begun: another run needs a job of its own")
            params = config.load()
            self.run = find_run(params, names)
            self.gate = gate(params, self.run, collab.site_name, pool)
        log.info("%s: ready", self.run)
        return {}

    @collab.publish
    @answer_or_refusal
    def update(self, arrays: dict, scalars: dict) -> dict:
        """Answers a round.

        Args:
            arrays: {name: array}, the broadcast.
            scalars: {name: number}, the instructions.

        Returns:
            {"arrays", "scalars"}, or {} if the client has left.
        """
        with self.lock:
            if not self.gate:
                raise Refused("a round before the run has begun")
            answer = self.gate.answer(Payload(arrays, scalars))
        return {} if answer is None else {"arrays": answer.arrays, "scalars": answer.scalars}

    @collab.publish
    @answer_or_refusal
    def end(self) -> dict:
        """Returns {"scalars": what a noisy run's account came to}. No round follows."""
        with self.lock:
            if not self.gate:
                raise Refused("an end before the run has begun")
            return {"scalars": self.gate.end()}

    @collab.publish
    @answer_or_refusal
    def alive(self) -> dict:
        """Answers a ping."""
        return {}
