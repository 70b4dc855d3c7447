"""An account whose noise falls from round to round by a plan that is fixed before the first: no outcome chooses it, so
that no filter is needed and every order and PLD may be claimed by."""

import math
from dataclasses import dataclass

from pipelines.federation.dp.account import Account
from pipelines.privacy.accounting import Steps

STAIRS = 24  # different noises at most: each is costed at every order


@dataclass
class Scheduled(Account):
    def scheduled(self, first: float, count: int) -> list[Steps]:
        """`local_steps` of them a round; each round's noise is `noise_decay` times the last one's, or, where there are
        more rounds than stairs, falls for several rounds at once."""
        per = self.settings.local_steps * self._rounds_a_stair
        return [
            Steps(first * self._factor(stair * per), self.sampling_rate, min(per, count - stair * per))
            for stair in range(math.ceil(count / per))
        ]

    def take(self, asked: int, factor: float = 1.0) -> int:
        """Not beyond the round of the plan that the next step falls in: a step's noise follows from how many came
        before it, whatever a server asks for."""
        self.noise_multiplier = self.first * self._factor(self.steps)
        left = self.settings.local_steps - self.steps % self.settings.local_steps
        return super().take(min(asked, left))

    @property
    def _rounds_a_stair(self) -> int:
        return math.ceil(self.settings.rounds / STAIRS)

    def _factor(self, before: int) -> float:
        """On the noise of the step that comes after so many."""
        number = before // self.settings.local_steps
        return self.settings.noise_decay ** (number - number % self._rounds_a_stair)
