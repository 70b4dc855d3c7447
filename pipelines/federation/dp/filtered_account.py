"""An account whose noise the server lowers by what it sees of the private model: a Renyi filter at one order, fixed
beforehand, checks each step, and the claim is the whole budget, for when a run stops may depend on outcomes."""

import math
from dataclasses import dataclass, field

from pipelines.federation.dp.account import Account
from pipelines.federation.dp.noise_schedule import falling, rounds_a_stair
from pipelines.privacy import accounting
from pipelines.privacy.accounting import Steps

GRID = 0.99


@dataclass
class Filtered(Account):
    """`steps_taken`: what happened. Where no noise multiplier is given, the first is planned for noise that falls after
    every round, so that no decay costs a round; a given one for no decay at all. So is the statement's PLD figure."""

    steps_taken: list[Steps] = field(default_factory=list)

    def __post_init__(self):
        super().__post_init__()
        order = accounting.planned_order(
            schedule=self.plan, delta=self.delta
        )  # of what is affordable at that noise
        spent = accounting.schedule_rdp(schedule=self.before, order=order)
        self.filter = accounting.RenyiFilter(self.epsilon, self.delta, order, spent)
        self.affordable = self._allowed(self.planned)

    def scheduled(self, first: float, count: int) -> list[Steps]:
        if self.settings.noise_multiplier is not None:
            return super().scheduled(first, count)
        lowest = self.settings.noise_decay ** (
            rounds_a_stair(self.settings) - 1
        )  # of a stair, at its end
        return falling(self.settings, first * lowest, count)

    def take(self, asked: int, factor: float = 1.0) -> int:
        """At `factor` times the first noise multiplier, not below the least: a server may ask, the filter decides."""
        asked_for = self.first * factor if factor > 0 else 0.0  # nan, too
        self.noise_multiplier = max(asked_for, min(self.first, self.settings.noise_least))
        taken = self._allowed(asked)
        if taken:
            self.filter.spend(self._now(taken))
            self.steps_taken.append(self._now(taken))
            self._enter(taken)
        return taken

    @property
    def left(self) -> int:
        """At the last round's noise: a rule for local steps that follows it does not outrun a budget which falling
        noise makes smaller than it was planned."""
        return self._allowed(self.planned - self.steps)

    @property
    def taken(self) -> list[Steps]:
        return [*self.before, *self.steps_taken]

    @property
    def epsilon_spent(self) -> float:
        return math.inf if self.leaks else self.filter.epsilon_spent

    @property
    def claim(self) -> float:
        return self.epsilon if self.affordable else super().claim

    @property
    def accountant(self) -> str:
        return f"Renyi filter at order {self.filter.order:g}, RDP of the sampled Gaussian"

    @property
    def cost(self) -> dict:
        """All that the filter may let pass. Where that is no step, what came before: of a tiny epsilon, which the
        conversion alone exceeds, the budget is below zero."""
        rdp = self.filter.budget if self.affordable else self.filter.spent
        return {"kind": "renyi", "order": self.filter.order, "rdp": rdp}

    def _allowed(self, asked: int) -> int:
        """The most, up to `asked`, that the filter lets pass at this noise. Who claims nothing gives nothing."""
        return self.filter.most(self._now(1), asked) if self.affordable else 0

    def _logged(self, count: int) -> Steps:
        """Noise down to a grid of a hundredth, so that a run has few different distributions: an upper bound."""
        now = self._now(count)
        if not self.first:
            return now
        stairs = math.ceil(math.log(self.noise_multiplier / self.first, GRID) - 1e-9)
        return now._replace(noise_multiplier=self.first * GRID**stairs)
