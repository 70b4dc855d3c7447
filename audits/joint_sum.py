"""Audits the noise of a secure sum in two worlds, against the server and t colluding clients.

**Quantity**: one integer, the sum over all clients of their records' contributions, with noise in
shares. **Sensitivity**: 1, in original units. **Neighbours**: one record is added at one honest
client. **Accounting**: noise_shares.py; the claim is mu of the plan.

Worst case: as few clients as the threshold allows are left, and as many of them collude as the plan
allows for. These add no noise, and what they add is known. So the shares of noise of s - t honest
clients are all that hides the record.

The sum goes through the whole protocol once in each world. Its vector has an entry for each draw.
"""

import numpy as np

from audits import many_draws
from pipelines.privacy.audits import two_worlds
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import Noise
from pipelines.privacy.secure_sums import noise_shares
from pipelines.privacy.secure_sums.in_process import example, run
from pipelines.privacy.secure_sums.messages import Step
from pipelines.privacy.secure_sums.noise_shares import SharePlan
from pipelines.privacy.secure_sums.server import Server

CLIENTS = 6
THRESHOLD = 5
# the first clients by name
COLLUDING = 2
# drops out before it sends its masked vector
DROPPED = "c2"
# the honest client with the record
HOLDER = "c5"


def audit(budget: Budget, *, runs: int, noise: Noise) -> Verdict:
    """Releases the joint sum many times in each world, and holds what shows against the claim.

    Args:
        budget: The budget of the plan against COLLUDING clients.
        runs: Releases in each world.
        noise: The noise source of every client.
    """
    plan = noise_shares.planned(
        budget,
        sigmas=(budget.sigma(1.0),),
        draws=1,
        clients=CLIENTS,
        threshold=THRESHOLD,
        colluding=COLLUDING,
    )
    absent = left_of_sum(plan, runs, noise, with_record=False)
    present = left_of_sum(plan, runs, noise, with_record=True)
    return two_worlds.audit(
        absent,
        present,
        mu_claimed=plan.mu,
        delta=budget.delta,
        confidence=many_draws.CONFIDENCE,
    )


def left_of_sum(plan: SharePlan, runs: int, noise: Noise, *, with_record: bool) -> np.ndarray:
    """Returns what server and colluding clients have of each draw, float64 [runs], original units.

    Args:
        plan: The plan of one sum.
        runs: How many draws.
        noise: The noise source of every client.
        with_record: True for the world with the record.
    """
    vectors = {}
    for place in range(CLIENTS):
        name = f"c{place}"
        contribution = plan.scale if with_record and name == HOLDER else 0
        vectors[name] = np.full(runs, contribution, np.int64)
        if place >= COLLUDING and name != DROPPED:
            vectors[name] = noise_shares.noisy(vectors[name], plan, 0, noise=noise)
    terms, clients = example(vectors, threshold=THRESHOLD, colluding=COLLUDING, bound=plan.bound)
    total = run(Server(terms), clients, {Step.MASKED: [DROPPED]})
    return total / plan.scale
