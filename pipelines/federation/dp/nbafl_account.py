"""What NbAFL's noise costs (Wei et al. 2020): by a bound that holds, and by the one that its paper prints.

A client's weights after local training follow from all its records at once. Clipped to norm C, or moved by at most C,
they can lie anywhere in that ball whatever record was added or removed: sensitivity 2 C. The paper takes 2 C / m, m the
size of the smallest set, as if weights were a mean of what single records ask for: m times less noise than it needs.
"""

import math
from dataclasses import dataclass

from pipelines.config.dp import Nbafl
from pipelines.federation.dp.account import Account
from pipelines.privacy import accounting


@dataclass
class Sound(Account):
    """A Gaussian release a round, of all records: Gaussian DP composes them exactly."""

    settings: Nbafl

    mechanism = "NbAFL, sound (Gaussian noise on each round's clipped update)"
    accountant = "exact Gaussian DP"
    by = staticmethod(accounting.schedule_epsilon_gdp)
    sampling_rate = 1.0
    leaks = False

    @property
    def planned(self) -> int:
        return self.settings.rounds

    @property
    def deviation(self) -> float:
        """Of the noise on each weight."""
        return 2 * self.settings.clipping_norm * self.noise_multiplier

    @property
    def details(self) -> dict:
        return {"sensitivity": 2 * self.settings.clipping_norm, "sigma": self.deviation}


@dataclass
class Printed(Sound):
    """The paper's noise: sigma = c T 2 C / (m epsilon), c = sqrt(2 ln(1.25 / delta)), T rounds in which every client
    uploads. It adds noise at the server only where clients upload less often than that. A heuristic: no guarantee."""

    mechanism = "NbAFL as its paper prints it, whose noise is for a sensitivity that does not hold,"
    accountant = "none that holds"
    leaks = True

    def __post_init__(self):
        settings = self.settings
        factor = math.sqrt(2 * math.log(1.25 / self.delta))
        self.first = factor * settings.rounds / (settings.records * self.epsilon)  # of 2 C
        self.noise_multiplier, self.affordable = self.first, settings.rounds

    @property
    def details(self) -> dict:
        return {
            **super().details,
            "epsilon_claimed_by_its_paper": self.epsilon,
            "epsilon_at_its_sensitivity": self.claim,
        }


def account(
    epsilon: float, delta: float, settings: Nbafl, before: tuple[accounting.Steps, ...] = ()
) -> Sound:
    kind = Printed if settings.bound == "paper" else Sound
    return kind(epsilon, delta, settings, before)
