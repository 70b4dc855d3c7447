"""Audits one client's run of `dpsgd_head` in two worlds: the mu that its account enters.

What the adversary sees is all that the client releases: the noisy number of its records, then a
noisy sum of gradients in each step. Worst case: a hostile server sends the same weights in each
step, under which one record's gradient is longer than the clip. The other world lacks that record.
The adversary knows all other records, so a run's score is its likelihood ratio.
"""

import numpy as np

from audits import dp_head_step, many_draws
from pipelines.config.dp import DpsgdHead
from pipelines.config.heads import HeadSchedule
from pipelines.federation.algorithms import dpsgd_head
from pipelines.federation.dp.head_account import HeadAccount
from pipelines.privacy.audits import two_worlds
from pipelines.privacy.audits.verdict import Verdict
from pipelines.privacy.discrete_gaussian import Budget, count_on_lattice
from pipelines.privacy.noise import Noise

# what the server asks for
STEPS = 2
SETTINGS = DpsgdHead(
    rounds=1 + STEPS,
    clipping_norm=dp_head_step.SETTINGS.clipping_norm,
    count_share=0.01,
    schedules=[HeadSchedule(from_signal=0.0, steps=STEPS, learning_rate=1.0)],
)


def audit(budget: Budget, *, runs: int, noise: Noise, settings: DpsgdHead = SETTINGS) -> Verdict:
    """Makes many runs in each world, with the noise of the client's account.

    Args:
        budget: The budget of the account.
        runs: Runs in each world.
        noise: The noise source.
        settings: The settings of the algorithm.
    """
    account = dpsgd_head.new_account(budget.epsilon, budget.delta, settings)
    account.fix_steps(STEPS)
    scale = account.lattice_steps(dp_head_step.WEIGHTS.size)
    count = len(dp_head_step.OTHERS)
    absent = dp_head_step.total(False, settings, scale)
    present = dp_head_step.total(True, settings, scale)
    direction = (present - absent) / scale
    without = scores(account, count, absent, direction, runs=runs, noise=noise)
    with_it = scores(account, count + 1, present, direction, runs=runs, noise=noise)
    return two_worlds.audit(
        without,
        with_it,
        mu_claimed=account.cost["mu"],
        delta=budget.delta,
        confidence=many_draws.CONFIDENCE,
    )


def scores(
    account: HeadAccount,
    count: int,
    total: np.ndarray,
    direction: np.ndarray,
    *,
    runs: int,
    noise: Noise,
) -> np.ndarray:
    """Returns the logarithm of each run's likelihood ratio but for a constant, float64 [runs].

    Args:
        account: The client's, whose steps are fixed.
        count: The number of its records.
        total: The sum of their gradients, int64 [d, K] in lattice steps.
        direction: By what the canary moves that sum, float64 [d, K] in units of the clip.
        runs: How many runs.
        noise: The noise source.
    """
    scale = account.lattice_steps(total.size)
    records = count_on_lattice(count, scale)
    sigma = account.count_sigma
    counts = many_draws.draws(records, runs, sigma=sigma, scale=scale, noise=noise)
    ratios = counts[:, 0] / sigma**2
    sigma = account.noise_multiplier
    for _ in range(STEPS):
        sums = many_draws.draws(total, runs, sigma=sigma, scale=scale, noise=noise)
        ratios += (sums * direction).sum((1, 2)) / sigma**2
    return ratios
