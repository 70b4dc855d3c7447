"""Answers at a client over NVFlare: the rounds of a method, or the steps of a joint release.

The rules of a joint release are in `joint.member`. This class stands in kits.
"""

import logging

from nvflare.collab import collab

from pipelines import config
from pipelines.federation.network.flare import client
from pipelines.federation.network.flare.client import answer_or_refusal
from pipelines.federation.network.gate import Refused
from pipelines.joint import joint_run
from pipelines.joint.member import Member

log = logging.getLogger("fedlens.client")


class Client(client.Client):
    """Serves one job: the calls of a federated run, or those of a joint release."""

    def __init__(self):
        super().__init__()
        self.member: Member | None = None

    @collab.publish
    @answer_or_refusal
    def begin(self, names: dict, pool: dict) -> dict:
        """Makes the client ready for the rounds of a method, in a job that is no joint release.

        Arguments are those of the class above.
        """
        if self.member:
            raise Refused("this job is a joint release: a run needs a job of its own")
        return super().begin(names, pool)

    @collab.publish
    @answer_or_refusal
    def describe_together(self, names: dict) -> dict:
        """Returns {"terms": digests of what all sides of a joint release must have alike}."""
        params = config.load()
        return {"terms": joint_run.named(params, names).terms(params)}

    @collab.publish
    @answer_or_refusal
    def ready_together(self, names: dict) -> dict:
        """Makes the client ready for a joint release, once per job. Nothing is spent yet.

        Args:
            names: The release's name, as `JointRun.names`.
        """
        with self.lock:
            if self.member or self.gate:
                raise Refused("this job has begun: another release needs a job of its own")
            params = config.load()
            run = joint_run.named(params, names)
            self.member = Member(params, run, collab.site_name)
        for line in self.member.planned.plan.lines:
            log.info("%s: %s", run.dataset, line)
        return {}

    @collab.publish
    @answer_or_refusal
    def begin_together(self, release: str) -> dict:
        """Enters the release in the ledger, and returns {"name": its public name there}.

        Args:
            release: Its name in the sums.
        """
        with self.lock:
            return {"name": self._joined().begin(release)}

    @collab.publish
    @answer_or_refusal
    def step_together(self, number: int, arrays: dict, scalars: dict) -> dict:
        """Answers a step of a secure sum.

        Args:
            number: Which sum of the release it is.
            arrays: Of the server's message.
            scalars: Of the server's message.

        Returns:
            {"arrays", "scalars"} of the answer.
        """
        with self.lock:
            answer = self._joined().answer(number, arrays, scalars)
        return {"arrays": answer.arrays, "scalars": answer.scalars}

    @collab.publish
    @answer_or_refusal
    def take_together(self, number: int, total, summands: int) -> dict:
        """Takes the total of a sum.

        Args:
            number: Which sum of the release it is.
            total: int64 of its shape, in lattice steps.
            summands: How many clients' vectors are in it.
        """
        with self.lock:
            self._joined().take(number, total, summands)
        return {}

    @collab.publish
    @answer_or_refusal
    def sign_together(self, together: dict) -> dict:
        """Returns {"signature": of all totals, and of the names of the release}.

        Args:
            together: The public name of the release in the ledger of each client that entered it.
        """
        with self.lock:
            return {"signature": self._joined().sign(together)}

    @collab.publish
    @answer_or_refusal
    def finish_together(self, signatures: dict) -> dict:
        """Stores the generator beside the ledger.

        Args:
            signatures: By client, of all that are left.
        """
        with self.lock:
            self._joined().finish(signatures)
        log.info("the joint release is stored: `dvc repro --force joint_release@..` takes it")
        return {}

    def _joined(self) -> Member:
        if not self.member:
            raise Refused("a step before the release has begun")
        return self.member
