"""How long a record's gradient may be: a constant, a norm that follows a quantile of the lot, or AUTO-S.

Neighbouring relation: add or remove one record. Released with noise: the sum of scaled gradients (sensitivity:
`sensitivity`) and, by `quantile`, a count (sensitivity 1/2). A step's account is of both together; the clipping norm of
the next step follows from the noisy count, and is free.
"""

import math

import torch

from pipelines.blocks.dp import Dpsgd
from pipelines.privacy.per_sample import Rule, clipped

RANGE = 1e4  # how far a norm may go from where it began, either way
GAMMA = 0.01  # AUTO-S's (Bu et al. 2023): a gradient g counts as g / (|g| + GAMMA)


class Clip:
    """One client's, from step to step. norm: C now."""

    def __init__(self, settings: Dpsgd):
        self.settings, self.norm = settings, 1.0 if settings.clipping == "auto_s" else settings.clipping_norm

    @property
    def sensitivity(self) -> float:
        """The most that one record adds to the sum: C, or 1 by AUTO-S, which leaves every norm below it."""
        return self.norm

    @property
    def rule(self) -> Rule:
        if self.settings.clipping == "auto_s":
            return lambda norms: 1 / (norms + GAMMA)
        return clipped(self.norm)

    def deviation(self, noise_multiplier: float) -> float:
        """Of the noise on each coordinate of the sum, where a whole step may cost `noise_multiplier`.

        By `quantile` the sum has multiplier z and the count's noise is s = clipping_noise z, which is 2 s of its
        sensitivity: together (z^-2 + (2 s)^-2)^(-1/2) = noise_multiplier.
        """
        return self._own(noise_multiplier) * self.sensitivity

    def adapt(self, norms: torch.Tensor, noise_multiplier: float, generator: torch.Generator) -> None:
        """The next step's norm (Andrew et al. 2021): C exp(-rate (share below C - quantile)), the share being that of
        the expected lot, from a noisy count of records below C less half of all.

        Args:
            norms: float64 [lot], of the lot's gradients before scaling. Private: they enter the noisy count alone.
        """
        settings = self.settings
        if settings.clipping != "quantile":
            return
        count = ((norms <= self.norm).double() - 0.5).sum().item()  # nan counts as above: each record moves it by 1/2
        deviation = settings.clipping_noise * self._own(noise_multiplier)
        noisy = count + deviation * torch.randn((), generator=generator).item()
        share = noisy / settings.expected_lot + 0.5
        step = -settings.clipping_rate * (share - settings.clipping_quantile)
        moved = self.norm * math.exp(min(max(step, -1.0), 1.0))
        self.norm = min(max(moved, settings.clipping_norm / RANGE), settings.clipping_norm * RANGE)

    def _own(self, noise_multiplier: float) -> float:
        """z of the gradients' sum."""
        if self.settings.clipping != "quantile":
            return noise_multiplier
        return noise_multiplier * math.hypot(1.0, 0.5 / self.settings.clipping_noise)
