"""When the server asks for less noise, by the loss of its model on public images.

The images are no client's, so the loss is post-processing of what was released. But the model is private's child: noise
that follows from it is chosen from private outcomes, and each client checks every step with a Rényi filter (`account`).
"""

import math
from itertools import pairwise

from pipelines.config.dp import LEAST_FACTOR, Dpsgd

FALLS = 4  # losses in a row that must fall, Adap DP-FL's eq. (9); before the first round they count as infinite


def next_factor(settings: Dpsgd, factor: float, losses: list[float]) -> float:
    """The factor on every client's first noise multiplier after a round. losses: one a round, the newest last."""
    control = settings.noise_control
    lower = (control == "falling_loss" and _falling(losses)) or (
        control == "plateau" and _flat(settings, losses)
    )
    return max(LEAST_FACTOR, factor * settings.noise_decay) if lower else factor


def _falling(losses: list[float]) -> bool:
    """Strictly, over the newest FALLS. Of two infinite losses neither is less."""
    newest = [*[math.inf] * (FALLS - 1), *losses][-FALLS:]
    return all(one > two for one, two in pairwise(newest))


def _flat(settings: Dpsgd, losses: list[float]) -> bool:
    """It fell by less than the threshold, or rose (DPFL-AGN's eq. 11 and 12)."""
    return len(losses) > 1 and losses[-2] - losses[-1] < settings.noise_threshold
