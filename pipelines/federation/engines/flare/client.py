"""What a client answers over NVFlare: thin functions before `serving`, which has the rules.

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
from pipelines.datasets import exports
from pipelines.errors import UserError
from pipelines.federation.engines.flare.homes import HOME
from pipelines.federation.messages import Payload
from pipelines.federation.protocol import Gate, Refused
from pipelines.federation.runs import Run, named
from pipelines.federation.serving import gate

log = logging.getLogger("fedlens.client")
ELSEWHERE = "it failed; why stands in the client's own log"


def told(function: Callable) -> Callable:
    """The answer, or {"refused": why}; of anything else the caller learns that it failed."""

    @functools.wraps(function)
    def wrapped(self, *args, **kwargs) -> dict:
        try:
            if collab.caller != "server":
                raise Refused("only the server of this job is answered")
            return function(self, *args, **kwargs)
        except (Refused, UserError) as refusal:
            log.warning("%s: refused: %s", function.__name__, refusal)
            return {"refused": str(refusal)}
        except Exception:
            log.exception("%s failed", function.__name__)
            return {"refused": ELSEWHERE}

    return wrapped


class Client:
    """One job's. `begin` once, then `update` each round; `alive` at any time."""

    def __init__(self):
        os.chdir(os.environ[HOME])
        self.run: Run | None = None
        self.gate: Gate | None = None
        self.lock = threading.Lock()  # calls come in threads

    @collab.publish
    @told
    def describe(self, names: dict) -> dict:
        """{"terms": digests of what both sides must have alike}."""
        params = config.load()
        return {"terms": named(params, names).terms(params)}

    @collab.publish
    @told
    def exported(self, names: dict) -> dict:
        """The client's released set, {"images", "labels"}: what it hands out anyway."""
        run = named(config.load(), names)
        (data,) = exports.images(run.dataset, [collab.site_name], run.generator).values()
        return {"images": data.images, "labels": data.labels}

    @collab.publish
    @told
    def begin(self, names: dict, pool: dict) -> dict:
        """Makes the client ready for the first round; a noisy run's budget is spent then. Once per job."""
        with self.lock:
            if self.gate:
                raise Refused("this job has begun: another run needs a job of its own")
            params = config.load()
            self.run = named(params, names)
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
