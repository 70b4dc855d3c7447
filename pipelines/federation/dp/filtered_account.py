"""An account of noise that the server lowers by what it sees of the private model.

A Renyi filter at one order, fixed before the run, checks each step. The claim is the whole budget, for
when a run stops may depend on outcomes.
"""

import math
from dataclasses import dataclass, field

from pipelines.federation.dp.account import Account
from pipelines.federation.dp.noise_schedule import falling, rounds_a_stair
from pipelines.privacy import accounting
from pipelines.privacy.accounting import Steps

GRID = 0.99


@dataclass
class Filtered(Account):
    """Accounts for steps whose noise is chosen on the way.

    If no noise multiplier is given, the first is planned for noise that falls after every round, so
    that no decay costs a round. If one is given, the plan has no decay at all. The statement's PLD
    figure is of the same plan.

    Attributes:
        steps_taken: what happened.
        filter: the Renyi filter, at the order that is best for the planned steps.
    """

    steps_taken: list[Steps] = field(default_factory=list)

    def __post_init__(self):
        super().__post_init__()
        # of what is affordable at that noise
        order = accounting.planned_order(schedule=self.plan, delta=self.delta)
        spent = accounting.schedule_rdp(schedule=self.before, order=order)
        self.filter = accounting.RenyiFilter(self.epsilon, self.delta, order, spent)
        self.affordable = self._allowed(self.planned)

    def scheduled(self, first: float, count: int) -> list[Steps]:
        """Returns the first `count` planned steps from noise multiplier `first`."""
        if self.settings.noise_multiplier is not None:
            return super().scheduled(first, count)
        # that of the end of a stair
        lowest = self.settings.noise_decay ** (rounds_a_stair(self.settings) - 1)
        return falling(self.settings, first * lowest, count)

    def take(self, asked: int, factor: float = 1.0) -> int:
        """Enters steps before they are taken, at `factor` times the first noise multiplier.

        The noise does not fall below the settings' least. A server may ask; the filter decides.
        """
        # nan, too, is not above 0
        asked_for = self.first * factor if factor > 0 else 0.0
        self.noise_multiplier = max(asked_for, min(self.first, self.settings.noise_least))
        taken = self._allowed(asked)
        if taken:
            self.filter.spend(self._now(taken))
            self.steps_taken.append(self._now(taken))
            self._enter(taken)
        return taken

    @property
    def left(self) -> int:
        """Returns the steps that the budget still buys at the last round's noise.

        So a rule for local steps that follows it does not outrun a budget which falling noise makes
        smaller than it was planned.
        """
        return self._allowed(self.planned - self.steps)

    @property
    def taken(self) -> list[Steps]:
        """Returns the steps so far, and what came before them."""
        return [*self.before, *self.steps_taken]

    @property
    def epsilon_spent(self) -> float:
        """Returns epsilon so far, by the filter."""
        return math.inf if self.leaks else self.filter.epsilon_spent

    @property
    def claim(self) -> float:
        """Returns the whole budget, or less where it affords no step."""
        return self.epsilon if self.affordable else super().claim

    @property
    def accountant(self) -> str:
        """Returns the name of the rule, for the statement."""
        return f"Renyi filter at order {self.filter.order:g}, RDP of the sampled Gaussian"

    @property
    def cost(self) -> dict:
        """Returns the cost as the ledger enters it: the filter's whole budget.

        If the budget affords no step, the cost is what was spent before the first. For a very small
        epsilon the RDP-to-DP conversion alone exceeds it, and the filter's budget is negative.
        """
        rdp = self.filter.budget if self.affordable else self.filter.spent
        return {"kind": "renyi", "order": self.filter.order, "rdp": rdp}

    def _allowed(self, asked: int) -> int:
        """Returns the most steps, up to `asked`, that the filter lets pass at this noise.

        An account that affords no step never takes one.
        """
        return self.filter.most(self._now(1), asked) if self.affordable else 0

    def _logged(self, count: int) -> Steps:
        """Returns the steps with their noise rounded down to a grid of a hundredth.

        So a run has few different distributions, and the figure is an upper bound.
        """
        now = self._now(count)
        if not self.first:
            return now
        stairs = math.ceil(math.log(self.noise_multiplier / self.first, GRID) - 1e-9)
        return now._replace(noise_multiplier=self.first * GRID**stairs)
