"""One client's account of a noisy head: a count of its records, then full-batch steps.

All of it are Gaussian releases over all records, so that mu squared adds up exactly (Dong, Roth and
Su). How many steps there are is known once clients have released their counts. Whatever the number,
the steps together have what the count leaves.
"""

import math
from dataclasses import dataclass, replace

from pipelines.config.dp import DpsgdHead
from pipelines.federation.dp.account import Account
from pipelines.lattice import lattice
from pipelines.privacy import accounting
from pipelines.privacy.accounting import Steps
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.lattice_gradients import COARSEST
from pipelines.privacy.noise import Noise
from pipelines.privacy.statement import NOT_COVERED, Statement


@dataclass
class HeadAccount(Account):
    """Holds what one client may spend on a head, and what it has.

    Attributes:
        fixed_steps: The steps that the server planned; 0 before it did.
    """

    settings: DpsgdHead
    fixed_steps: int = 0

    mechanism = "a count, and full-batch noisy gradient steps of a linear head on fixed features"
    accountant = "exact Gaussian DP (mu); discrete noise on integer sums"
    sampling_rate = 1.0
    leaks = False

    def __post_init__(self):
        if self.before:
            raise ValueError("A head starts from nothing that was released before.")
        if math.isfinite(self.epsilon):
            self.epsilon = min(self.epsilon, accounting.LARGEST_EPSILON)
        self.budget = Budget(self.epsilon, self.delta)
        self.affordable = self.planned
        self.first = self._multiplier(self.planned)
        self.noise_multiplier = self._multiplier(1)

    @property
    def planned(self) -> int:
        """Returns the steps: those that the server planned, or as many as there may be."""
        return self.fixed_steps or self.settings.rounds - 1

    @property
    def count_sigma(self) -> float:
        """Returns the standard deviation of the noise on the count, whose sensitivity is 1."""
        return self.budget.sigma(self.settings.count_share)

    @property
    def mu_of_steps(self) -> float:
        """Returns the mu of all steps together."""
        return math.sqrt(1 - self.settings.count_share) * self.budget.mu

    def check_released(self, count: int) -> None:
        """Checks that there is a lattice for the noise on so many numbers.

        Raises:
            UserError: As `lattice_steps`.
        """
        self.lattice_steps(count)

    def lattice_steps(self, count: int) -> int:
        """Returns the lattice steps per unit of all sums.

        Args:
            count: The number of the head's weights.

        Raises:
            UserError: Delta is too small for the lattice of the noise, or epsilon for the noise.
        """
        # of one step, of as many as there may be, and of the count
        sigmas = (self._multiplier(1), self.first, self.count_sigma)
        return lattice(self.budget, sigmas=sigmas, draws=1 + count, coarsest=COARSEST)

    def fix_steps(self, steps: int) -> None:
        """Fixes the number of steps, once: what a server asks for later changes nothing."""
        if not self.fixed_steps:
            self.fixed_steps = min(steps, self.settings.rounds - 1)
            self.affordable = self.fixed_steps
            self.noise_multiplier = self._multiplier(self.fixed_steps)

    def take(self, asked: int, factor: float = 1.0) -> int:
        """Enters steps before they are taken, and returns how many of them the plan allows."""
        taken = max(0, min(asked, self.left))
        self.steps += taken
        return taken

    def _multiplier(self, steps: int) -> float:
        """Returns the noise multiplier of each of so many steps."""
        return math.sqrt(steps) * self.budget.sigma(1 - self.settings.count_share)

    @property
    def epsilon_spent(self) -> float:
        """Returns epsilon so far, exactly."""
        if not self.budget.private:
            return math.inf
        mu_of_taken = math.sqrt(self.steps) / self.noise_multiplier
        mu_of_count = 1 / self.count_sigma
        mu = accounting.compose([mu_of_count, mu_of_taken])
        epsilon = accounting.gdp_epsilon(mu=mu, delta=self.budget.delta_of_noise)
        # the root's last bits may lie above the budget that the noise was planned for
        return min(epsilon, self.epsilon)

    @property
    def running(self) -> dict[str, float]:
        """Returns the figures after each round. The bound is exact, and so is PLD's."""
        spent = self.epsilon_spent
        return {"epsilon_spent": spent, "epsilon_by_pld": spent}

    def spent(self) -> dict:
        """Returns what happened."""
        return {"steps": self.steps, **self.running}

    @property
    def claim(self) -> float:
        """Returns the epsilon of the whole run, which is the budget's."""
        return self.epsilon

    @property
    def cost(self) -> dict:
        """Returns the cost as the ledger enters it."""
        return {"kind": "gaussian", "mu": self.budget.mu}

    @property
    def details(self) -> dict:
        """Returns the statement's own facts."""
        return {
            "count": {"sensitivity": 1.0, "sigma": self.count_sigma},
            "gradients": {
                "clipping_norm": self.settings.clipping_norm,
                "sensitivity": 1.0,
                "mu": self.mu_of_steps,
            },
        }

    def statement(
        self, noise: Noise, delta: float | None = None, *, details: bool = True
    ) -> Statement:
        """Returns what the run will have spent when all steps are taken.

        Args:
            noise: Where the client's noise comes from.
            delta: The client's own, which is the account's.
            details: False leaves `details` out.
        """
        stated = super().statement(noise, delta, details=details)
        formal = stated.guarantee == "formal"
        return replace(
            stated,
            mu=self.budget.mu if formal else None,
            noise=noise.source,
            not_covered=NOT_COVERED,
        )

    def scheduled(self, first: float, count: int) -> list[Steps]:
        """Returns the first `count` steps, after the count of records."""
        return [Steps(self.count_sigma, 1.0, 1), Steps(first, 1.0, count)]
