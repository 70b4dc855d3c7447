"""An account whose noise falls from round to round by a plan that is fixed before the first: no outcome chooses it, so
that no filter is needed and every order and PLD may be claimed by."""

import math
from dataclasses import dataclass

from pipelines.config.dp import Dpsgd
from pipelines.federation.dp.account import Account
from pipelines.privacy.accounting import Steps

STAIRS = 24  # different noises at most: each is costed at every order


@dataclass
class Scheduled(Account):
    def scheduled(self, first: float, count: int) -> list[Steps]:
        return falling(self.settings, first, count)

    def take(self, asked: int, factor: float = 1.0) -> int:
        """Not beyond the round of the plan that the next step falls in: a step's noise follows from how many came
        before it, whatever a server asks for."""
        self.noise_multiplier = self.first * fallen(self.settings, self.steps)
        left = self.settings.local_steps - self.steps % self.settings.local_steps
        return super().take(min(asked, left))


def falling(settings: Dpsgd, first: float, count: int) -> list[Steps]:
    """`local_steps` of them a round; each round's noise is `noise_decay` times the last one's, or, where there are more
    rounds than stairs, falls for several rounds at once."""
    per = settings.local_steps * rounds_a_stair(settings)
    return [
        Steps(
            first * fallen(settings, stair * per),
            settings.sampling_rate,
            min(per, count - stair * per),
        )
        for stair in range(math.ceil(count / per))
    ]


def fallen(settings: Dpsgd, before: int) -> float:
    """The factor on the noise of the step that comes after so many."""
    number = before // settings.local_steps
    return settings.noise_decay ** (number - number % rounds_a_stair(settings))


def rounds_a_stair(settings: Dpsgd) -> int:
    """That have the noise of the first of them."""
    return math.ceil(settings.rounds / STAIRS)
