"""One client's account of noisy steps: how much noise its budget needs, and how many steps it can afford.

Accounted by RDP of the Poisson-sampled Gaussian, add or remove one record, before each step; PLD is the final figure
beside the claim. Noise is fixed before the first step, so the least over orders is a valid claim.
"""

from dataclasses import dataclass

from pipelines.blocks.dp import Dpsgd
from pipelines.privacy import accounting
from pipelines.privacy.noise import Noise
from pipelines.privacy.statement import Statement


@dataclass
class Account:
    """steps: taken so far. noise_multiplier: what one step costs as a single release, all that it lets out together.

    It is the parameter's where that names one, and the client leaves when its budget is gone; else the least that all
    planned steps can be afforded with.
    """

    epsilon: float
    delta: float
    settings: Dpsgd
    steps: int = 0

    def __post_init__(self):
        planned = self.settings.rounds * self.settings.local_steps
        plan = {"epsilon": self.epsilon, "delta": self.delta, "sampling_rate": self.settings.sampling_rate}
        self.noise_multiplier = self.settings.noise_multiplier or accounting.noise_for(**plan, steps=planned)
        self.affordable = accounting.steps_for(**plan, noise_multiplier=self.noise_multiplier, at_most=planned)

    def take(self, asked: int) -> int:
        """How many of the steps asked for the budget allows. They are entered here, before they are taken."""
        taken = min(asked, self.affordable - self.steps)
        self.steps += taken
        return taken

    def schedule(self, steps: int) -> list[accounting.Steps]:
        return [accounting.Steps(self.noise_multiplier, self.settings.sampling_rate, steps)]

    def statement(self, noise: Noise, *, steps: int | None = None) -> Statement:
        """What was spent, or will be by `steps`: the RDP figure that stops the run is the claim, PLD's is beside it."""
        steps = self.steps if steps is None else steps
        spent = {"schedule": self.schedule(steps), "delta": self.delta}
        formal = noise.guarantee == "formal"
        return Statement(
            mechanism="dpsgd (Poisson-sampled Gaussian on clipped gradients)",
            epsilon=accounting.schedule_epsilon(**spent),
            delta=self.delta,
            mu=None,
            guarantee=noise.guarantee if self.noise_multiplier else "none",
            noise="torch normal, generator seeded by the operating system" if formal else noise.source,
            accountant="RDP of the sampled Gaussian",
            sampling=f"Poisson, rate {self.settings.sampling_rate:g}",
            details={
                "epsilon_by_pld": accounting.schedule_epsilon_pld(**spent),
                "noise_multiplier": self.noise_multiplier,
                "steps": steps,
                "settings": self.settings.model_dump(),
            },
        )
