"""Draws the noise of a sum in shares: each client adds one, and no client knows the whole.

**Quantity**: the sum over clients of integer vectors, each a sum over that client's records of
contributions on a lattice of step 1 / `scale`. **Sensitivity**: 1 in L2 norm, in original units.
**Neighbours**: one record is added or removed at one client. Clients hold disjoint records.
**Noise**: each client adds a discrete Gaussian of variance sigma^2 / (s - t). Here s is the fewest
clients of a sum (the threshold), and t how many of those may collude with the server. Colluding
clients know their own noise, or add none. So at least s - t shares are unknown to them, which
together have the variance sigma^2. Further shares are post-processing. Where nobody may drop out, s
is the number K of clients, and a share has the variance sigma^2 / (K - t).

**Accounting**, for the h = s - t shares, or another h (trust.py). Let s1 be the deviation of a share
in lattice steps, and d the number of released integers.

1. A sum of h discrete Gaussians of deviation s1 has at each integer the probability of one of
   deviation sqrt(h) s1, up to a factor of e^tau (Kairouz, Liu and Steinke 2021, the theorem on sums
   of discrete Gaussians), where tau = 10 sum_{k=1}^{h-1} exp(-2 pi^2 s1^2 k / (k + 1)). Over d
   integers the factor is e^(d tau). If one discrete Gaussian gives (epsilon, delta), the sum gives
   (epsilon + 2 d tau, e^(d tau) delta): one factor for each of the two neighbouring laws.
2. One discrete Gaussian differs from a rounded continuous one by the slack of
   `accounting.rounding_slack`, which the lattice holds below a thousandth of delta.
3. The continuous one is mu-GDP, exactly: mu = 1 / (sqrt(h) share), in original units.

Both distances are paid inside delta and epsilon. Lattices are so fine that d tau is below 1e-250.
Each client enters mu in its own ledger before it draws.

>>> budget = Budget(epsilon=3.0, delta=1e-5)
>>> plan = planned(
...     budget, sigmas=(budget.sigma(1.0),), draws=100, clients=10, threshold=9, colluding=5
... )
>>> plan.least_honest, round(plan.share(0) / plan.sigmas[0], 3)
(4, 0.5)
>>> round(plan.epsilon(honest=4), 6)
3.0
"""

import math
from dataclasses import dataclass

import numpy as np

from pipelines.privacy import accounting
from pipelines.privacy.discrete_gaussian import FINEST, Budget, lattice_scale
from pipelines.privacy.noise import WIDEST, Noise
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import Roster
from pipelines.privacy.secure_sums.terms import LIMIT, Terms, least_threshold


@dataclass(frozen=True)
class SharePlan:
    """Holds the noise of one release in shares, from public numbers alone.

    Attributes:
        budget: The (epsilon, delta) of the release against t colluding clients.
        sigmas: The planned deviation of each of its sums, in original units. Several sums are one
            release: later ones may look at earlier ones.
        draws: How many integers all sums have together.
        clients: K.
        threshold: s, the fewest clients of a sum.
        colluding: t.
        scale: Lattice steps per unit.
    """

    budget: Budget
    sigmas: tuple[float, ...]
    draws: int
    clients: int
    threshold: int
    colluding: int
    scale: int

    @property
    def least_honest(self) -> int:
        """Returns s - t, the fewest shares that colluding clients do not know."""
        return self.threshold - self.colluding

    @property
    def mu(self) -> float:
        """Returns what the release costs against t colluding clients, in Gaussian DP."""
        return accounting.compose([1 / sigma for sigma in self.sigmas])

    @property
    def bound(self) -> int:
        """Returns the largest absolute value of a client's noisy entry, for `Terms.bound`.

        Sums beyond half of what 64 bits hold are noticed.
        """
        return LIMIT // 2 // self.clients

    def share(self, number: int) -> float:
        """Returns the deviation of a client's noise in a sum, in original units."""
        return self.sigmas[number] / math.sqrt(self.least_honest)

    def share_steps(self, number: int) -> float:
        """Returns the same in lattice steps, rounded up in its last bit."""
        return math.nextafter(self.share(number) * self.scale, math.inf)

    def epsilon(self, *, honest: int) -> float:
        """Returns the epsilon of the release at the budget's delta, with so many unknown shares.

        It is infinite above LARGEST_EPSILON, for which no lattice is cut.
        """
        if not self.budget.private:
            return math.inf
        mu = self.mu * math.sqrt(self.least_honest / honest)
        steps = min(self.share_steps(number) for number in range(len(self.sigmas)))
        distance = self.draws * distance_of_sums(steps, honest)
        delta = self.budget.delta_of_noise * math.exp(-distance)
        epsilon = accounting.gdp_epsilon(mu=mu, delta=delta) + 2 * distance
        # the last bits of the planned case's own epsilon may round up
        largest = accounting.LARGEST_EPSILON * (1 + 1e-9)
        return epsilon if epsilon <= largest else math.inf

    def words(self, number: int) -> str:
        """Returns what each client adds to a sum, for `Terms.noise`."""
        if not self.budget.private:
            return "no noise, and no privacy"
        return (
            f"sum {number + 1} of {len(self.sigmas)}: a discrete Gaussian of deviation "
            f"{self.share_steps(number)!r} on a lattice of {self.scale} steps per unit"
        )

    def terms(
        self, release: str, number: int, roster: Roster, length: int, before: bytes = b""
    ) -> Terms:
        """Returns the terms of the round that makes one of the sums.

        Args:
            release: The name of the release.
            number: Which sum of the release it is, from 0 on.
            roster: The clients.
            length: How many integers the sum has.
            before: A hash of the release's earlier totals.

        Raises:
            Refusal: The terms are not safe.
        """
        return Terms(
            run=release,
            round=number,
            release=f"{release}, sum {number + 1}",
            roster=roster,
            length=length,
            bound=self.bound,
            threshold=self.threshold,
            colluding=self.colluding,
            noise=self.words(number),
            before=before,
        )


def planned(
    budget: Budget,
    *,
    sigmas: tuple[float, ...],
    draws: int,
    clients: int,
    threshold: int,
    colluding: int,
    coarsest: int = 1,
) -> SharePlan:
    """Returns the plan of a release. No private record is read.

    Args:
        budget: The budget of the release.
        sigmas: The deviation of each sum, in original units, at sensitivity 1.
        draws: How many integers all sums have together.
        clients: K.
        threshold: s, the fewest clients of a sum.
        colluding: t. Against a server that lies, 2 s > K + t must hold.
        coarsest: Lattice steps per unit, at least.

    Raises:
        Refusal: The threshold is not safe, delta is too small for a lattice, or epsilon is so small
            that 64 bits have no room for the noise.
    """
    least = least_threshold(clients=clients, colluding=colluding)
    if not (0 <= colluding < clients and least <= threshold <= clients):
        raise Refusal(
            f"With {clients} clients, of whom {colluding} may collude, the threshold must be in "
            f"[{least}, {clients}]. Got {threshold}."
        )
    share = min(sigmas) / math.sqrt(threshold - colluding)
    scale = lattice_scale(budget, sigma=share, draws=draws)
    if scale > FINEST:
        raise Refusal(
            f"delta must be larger: {draws} released numbers would need a lattice finer than 64 "
            f"bits have room for. Got {budget.delta}."
        )
    plan = SharePlan(budget, sigmas, draws, clients, threshold, colluding, max(scale, coarsest))
    if max(plan.share_steps(number) for number in range(len(sigmas))) > WIDEST:
        raise Refusal(
            "epsilon must be larger: 64 bits have no room for the noise of so small a budget. Got "
            f"{budget.epsilon}."
        )
    return plan


def noisy(total: np.ndarray, plan: SharePlan, number: int, *, noise: Noise) -> np.ndarray:
    """Returns a client's sum with its share of noise, int64 modulo 2^64.

    A sum that outgrew 64 bits has wrapped, and goes on so: the noisy sum modulo 2^64 is
    post-processing of one that does not wrap. To cut such a sum to a bound here would not be: two
    neighbouring ones may have wrapped to opposite ends.

    Args:
        total: The client's sum over its records, int64 in lattice steps.
        plan: The plan.
        number: Which sum of the release it is, from 0 on.
        noise: The source of noise.
    """
    if not plan.budget.private:
        return total
    return total + noise.discrete_gaussian(total.shape, plan.share_steps(number))


def distance_of_sums(steps: float, count: int) -> float:
    """Returns tau of one integer: how far a sum of discrete Gaussians is from a single one.

    It bounds the logarithm of the ratio of their probabilities at any integer (Kairouz, Liu and
    Steinke 2021). The paper asks for a variance of a half at least.

    Args:
        steps: The deviation of each of them, in lattice steps.
        count: How many are summed.
    """
    if steps < math.sqrt(0.5):
        return math.inf
    total = 0.0
    for k in range(1, count):
        total += math.exp(-2 * math.pi**2 * steps**2 * k / (k + 1))
    return 10 * total
