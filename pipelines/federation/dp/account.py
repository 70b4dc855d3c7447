"""One client's account of noisy steps: how much noise its budget needs, and how many steps it can afford.

By RDP of the Poisson-sampled Gaussian, add or remove one record, before each step; PLD is the final figure beside the
claim. Noise is fixed before the first step, so the least over orders is a valid claim; where it is not, see `filtered`.
"""

import math
from dataclasses import dataclass

from pipelines.blocks.dp import Dpsgd
from pipelines.privacy import accounting
from pipelines.privacy.accounting import Steps
from pipelines.privacy.noise import Noise
from pipelines.privacy.statement import Statement


@dataclass
class Account:
    """steps: taken so far. first: the noise multiplier that was planned. noise_multiplier: that of the step at hand, of
    all that the step lets out together as one release.

    `first` is the parameter's where that names one, and the client leaves when its budget is gone; else the least that
    all planned steps can be afforded with.
    """

    epsilon: float
    delta: float
    settings: Dpsgd
    steps: int = 0

    def __post_init__(self):
        if math.isfinite(self.epsilon):
            self.epsilon = min(self.epsilon, accounting.LARGEST_EPSILON)
        plan = {"epsilon": self.epsilon, "delta": self.delta, "sampling_rate": self.settings.sampling_rate}
        self.first = self.settings.noise_multiplier or accounting.noise_for(**plan, steps=self.planned)
        self.noise_multiplier = self.first
        self.affordable = accounting.steps_for(**plan, noise_multiplier=self.first, at_most=self.planned)

    @property
    def planned(self) -> int:
        """Steps at most."""
        settings = self.settings
        fixed = settings.local_steps_rule == "fixed"
        return settings.rounds * (settings.local_steps if fixed else settings.most_local_steps)

    @property
    def left(self) -> int:
        """Steps that the budget still buys at the first noise."""
        return max(0, self.affordable - self.steps)

    def take(self, asked: int, factor: float = 1.0) -> int:
        """How many of the steps asked for the budget allows. They are entered here, before they are taken."""
        taken = max(0, min(asked, self.left))
        self.steps += taken
        return taken

    @property
    def taken(self) -> list[Steps]:
        return [self._of(self.first, self.steps)]

    @property
    def epsilon_spent(self) -> float:
        """By the rule that stops the run, which knows noise and rates alone: free to tell."""
        return accounting.schedule_epsilon(schedule=self.taken, delta=self.delta)

    def spent(self) -> dict:
        """What happened: a figure by the rule that stopped the run, and PLD's, which is no claim where the noise was
        chosen on the way."""
        return {"steps": self.steps, "epsilon_spent": self.epsilon_spent, "epsilon_by_pld": self._by_pld(self.taken)}

    @property
    def plan(self) -> list[Steps]:
        """All affordable steps, at the first noise."""
        return [self._of(self.first, self.affordable)]

    @property
    def claim(self) -> float:
        """The epsilon of the whole run."""
        return accounting.schedule_epsilon(schedule=self.plan, delta=self.delta)

    @property
    def accountant(self) -> str:
        return "RDP of the sampled Gaussian"

    @property
    def cost(self) -> dict:
        """As the ledger enters it."""
        return {"kind": "sampled_gaussian", "schedule": [list(steps) for steps in self.plan]}

    def statement(self, noise: Noise) -> Statement:
        """What the run will have spent when all affordable steps are taken, as planned; PLD's figure beside it."""
        formal = noise.guarantee == "formal"
        return Statement(
            mechanism="DP-SGD (Poisson-sampled Gaussian on clipped gradients)",
            epsilon=self.claim,
            delta=self.delta,
            mu=None,
            guarantee=noise.guarantee if self.first and math.isfinite(self.claim) else "none",
            noise="torch normal, generator seeded by the operating system" if formal else noise.source,
            accountant=self.accountant,
            sampling=f"Poisson, rate {self.settings.sampling_rate:g}",
            details={
                "epsilon_by_pld_as_planned": self._by_pld(self.plan),
                "noise_multiplier": self.first,
                "steps": self.affordable,
                "settings": self.settings.model_dump(),
            },
        )

    def _by_pld(self, schedule: list[Steps]) -> float:
        """Infinite where RDP's figure is beyond any use: the distributions of so little noise fill the memory."""
        if accounting.schedule_epsilon(schedule=schedule, delta=self.delta) > accounting.LARGEST_EPSILON:
            return math.inf
        return accounting.schedule_epsilon_pld(schedule=schedule, delta=self.delta)

    def _of(self, noise_multiplier: float, count: int) -> Steps:
        return Steps(noise_multiplier, self.settings.sampling_rate, count)
