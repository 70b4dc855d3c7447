"""Noise that falls from round to round: by a plan, or when the server asks for less.

A plan is fixed before the first round: no outcome chooses it, so that no filter is needed and every
order and PLD may be claimed by. The server asks by the loss of its model on public images. They are
no client's, so the loss is post-processing of what was released. But the model follows from private
records: such noise is chosen from private outcomes, and each client checks every step with a Renyi
filter (`filtered_account`).
"""

import math
from dataclasses import dataclass
from itertools import pairwise

from pipelines.config.dp import LEAST_FACTOR, Dpsgd
from pipelines.federation.dp.account import Account
from pipelines.privacy.accounting import Steps

STAIRS = 24  # different noises at most: each is costed at every order
FALLS = 4  # losses in a row that must fall, Adap DP-FL's eq. (9); before the first round: infinite


@dataclass
class Scheduled(Account):
    """Accounts for noise that falls by a plan."""

    def scheduled(self, first: float, count: int) -> list[Steps]:
        """Returns the first `count` steps, where the run begins with noise multiplier `first`."""
        return falling(self.settings, first, count)

    def take(self, asked: int, factor: float = 1.0) -> int:
        """Enters steps before they are taken, and returns how many.

        Not beyond the round of the plan that the next step falls in: a step's noise follows from how
        many came before it, whatever a server asks for.
        """
        self.noise_multiplier = self.first * fallen(self.settings, self.steps)
        left = self.settings.local_steps - self.steps % self.settings.local_steps
        return super().take(min(asked, left))


def falling(settings: Dpsgd, first: float, count: int) -> list[Steps]:
    """Plans noise that is `noise_decay` times the last round's in each round.

    If there are more rounds than STAIRS, it falls for several rounds at once.

    Args:
        settings: `local_steps` a round, the decay and the sampling rate.
        first: the noise multiplier of the first round.
        count: of the steps.
    """
    per = settings.local_steps * rounds_a_stair(settings)
    schedule = []
    for done in range(0, count, per):
        multiplier = first * fallen(settings, done)
        schedule.append(Steps(multiplier, settings.sampling_rate, min(per, count - done)))
    return schedule


def fallen(settings: Dpsgd, before: int) -> float:
    """Returns the factor on the noise of the step that comes after `before` others."""
    number = before // settings.local_steps
    return settings.noise_decay ** (number - number % rounds_a_stair(settings))


def rounds_a_stair(settings: Dpsgd) -> int:
    """Returns the number of consecutive rounds that share one noise multiplier."""
    return math.ceil(settings.rounds / STAIRS)


def next_factor(settings: Dpsgd, factor: float, losses: list[float]) -> float:
    """Returns the factor on every client's first noise multiplier in the next round.

    Args:
        settings: the noise control, its decay and threshold.
        factor: that of the last round.
        losses: one a round, the newest last.
    """
    control = settings.noise_control
    falls = control == "falling_loss" and _falling(losses)
    stays = control == "plateau" and _flat(settings, losses)
    return max(LEAST_FACTOR, factor * settings.noise_decay) if falls or stays else factor


def _falling(losses: list[float]) -> bool:
    """Returns whether the newest FALLS losses fall strictly. Of two infinite ones neither is less."""
    newest = [*[math.inf] * (FALLS - 1), *losses][-FALLS:]
    return all(earlier > later for earlier, later in pairwise(newest))


def _flat(settings: Dpsgd, losses: list[float]) -> bool:
    """Returns whether the loss fell by less than the threshold (DPFL-AGN's eq. 11 and 12)."""
    return len(losses) > 1 and losses[-2] - losses[-1] < settings.noise_threshold
