"""Says which joint release a job makes, and what all sides must have alike for it."""

from dataclasses import asdict, dataclass

import numpy as np

from pipelines.config import Params
from pipelines.config.generators import JOINT
from pipelines.errors import UserError
from pipelines.federation.run_spec import digests
from pipelines.privacy.secure_sums.encoding import digest
from pipelines.seal import roster_of
from pipelines.synthesis import joint_apart
from pipelines.synthesis.joint_release import JointRelease

# of a job's name, in the place of a federated method's
METHOD = "joint_release"
# raise it when a message between machines, or what is signed, is another
PROTOCOL = "fedlens joint release, version 2"


@dataclass(frozen=True)
class JointRun:
    """Names a joint release between machines.

    Attributes:
        dataset: The data set's name.
        generator: The generator's name, one of `config.generators.JOINT`.
    """

    dataset: str
    generator: str

    @property
    def names(self) -> dict[str, str]:
        """Returns the name as a message has it."""
        return {"dataset": self.dataset, "method": METHOD, "generator": self.generator}

    def planned(self, params: Params) -> JointRelease:
        """Returns the release by the parameters of one side."""
        return joint_apart.of_roster(params, self.dataset, self.generator)

    def carried(self, params: Params) -> Params:
        """Returns parameters that say what the loss of a client means for this release.

        Where nobody may drop out, a loss ends it with the reason.

        Args:
            params: The parameters of one side.
        """
        on_loss = "skip" if self.planned(params).group.may_drop else "fail"
        federation = params.federation.model_copy(update={"on_loss": on_loss})
        return params.model_copy(update={"federation": federation})

    def terms(self, params: Params) -> dict[str, str]:
        """Returns {what all sides must have alike: a digest of it}.

        It holds the budget, which all members have and every card states, and no record or place.

        Raises:
            UserError: The plan is impossible, or the roster is none.
        """
        planned = self.planned(params)
        roster = roster_of(params)
        sums = []
        for course in planned.plan.courses:
            for number, shape in enumerate(course.shapes):
                terms = course.shares.terms("", number, roster, int(np.prod(shape)))
                sums.append(terms.digest.hex())
        details = planned.plan.statement.details
        alike = {
            "roster": roster.digest.hex(),
            "budget": planned.budget,
            "trust": asdict(planned.group),
            "settings": params.generator(self.dataset, self.generator).model_dump(),
            "seed": planned.seed if planned.module.ONE_SEED else None,
            "profile": [planned.plan.space.shape, planned.plan.space.classes],
            # these two follow from the declared numbers of records
            "signal": details.get("signal"),
            "teachers": details.get("N"),
            # of a head, with the encoder's weights
            "features": details.get("features"),
            # the noise to its last bit, and the code
            "sums": [planned.module.VERSION, *sums],
            "protocol": PROTOCOL,
        }
        return digests(alike)

    def opening(self, params: Params) -> bytes:
        """Returns what the hash of the release's totals begins with (`seal.chained`).

        It stands in the terms of the first sum. So clients whose release or settings differ make no
        sum, whatever the server told them of each other.

        Args:
            params: The parameters of one side.
        """
        parts = []
        for name, value in sorted(self.terms(params).items()):
            parts += [name, value]
        return digest(PROTOCOL, self.dataset, self.generator, *parts)


def is_named(names: dict) -> bool:
    """Returns whether a job's name is that of a joint release."""
    return names.get("method") == METHOD


def named(params: Params, names: dict) -> JointRun:
    """Returns the joint release that a message names.

    Raises:
        UserError: These parameters know no such release between machines.
    """
    run = JointRun(str(names.get("dataset", "")), str(names.get("generator", "")))
    generators = [name for name in params.synthesis.generators if name in JOINT]
    known = {
        "data set": (run.dataset, params.datasets),
        "joint generator": (run.generator, generators),
    }
    for what, (value, allowed) in known.items():
        if value not in allowed:
            raise UserError(f"These parameters know no {what} {value!r}.")
    if not params.federation.is_remote:
        raise UserError(
            "The 'mode' parameter of federation must be 'remote', with the engine 'nvflare', on "
            f"each side of a joint release between machines. Got {params.federation.mode!r} and "
            f"{params.federation.engine!r} instead. (params.yaml)"
        )
    return run
