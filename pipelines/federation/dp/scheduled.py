"""An account whose noise falls from round to round by a plan that is fixed before the first: no outcome chooses it, so
that no filter is needed and every order and PLD may be claimed by."""

import math
from dataclasses import dataclass

from pipelines.federation.dp.account import Account
from pipelines.privacy.accounting import Steps


@dataclass
class Scheduled(Account):
    def scheduled(self, first: float, count: int) -> list[Steps]:
        """`local_steps` of them a round; each round's noise is `noise_decay` times the last one's."""
        per, decay = self.settings.local_steps, self.settings.noise_decay
        return [
            Steps(first * decay**number, self.sampling_rate, min(per, count - number * per))
            for number in range(math.ceil(count / per))
        ]

    def take(self, asked: int, factor: float = 1.0) -> int:
        """Not beyond the round of the plan that the next step falls in: a step's noise follows from how many came
        before it, whatever a server asks for."""
        number, done = divmod(self.steps, self.settings.local_steps)
        self.noise_multiplier = self.first * self.settings.noise_decay**number
        return super().take(min(asked, self.settings.local_steps - done))
