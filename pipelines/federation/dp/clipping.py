"""Clipping: how long a record's gradient may be, and how the clipping norm follows what was released.

Neighbouring relation: add or remove one record. Released with noise: the sum of scaled gradients
(sensitivity: `sensitivity`) and, by some modes, a second sum over the same lot, of one number a record
(`Extra`). A step's account covers both sums; the norm that follows from what was released is free.
`nonprivate_oracle` looks at the norms as they are: no privacy, which the statement says.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch

from pipelines.config.dp import Dpsgd
from pipelines.privacy import float_gaussian
from pipelines.privacy.noise import Noise
from pipelines.privacy.per_sample import Rule, clipped

RANGE = 1e4  # how far a norm may go from where it began, either way
GAMMA = 0.01  # of AUTO-S (Bu et al. 2023): a gradient g counts as g / (|g| + GAMMA)


class Extra(NamedTuple):
    """Declares a second sum over a lot.

    Attributes:
        of: maps the lot's norms, float64 [lot], and C to each record's number, within
            +-sensitivity.
        sensitivity: the most that one record adds to the sum.
    """

    of: Callable[[torch.Tensor, float], torch.Tensor]
    sensitivity: float


def _extra(settings: Dpsgd) -> Extra | None:
    """Returns the second sum of a clip mode, if it has one.

    The numbers of `quantile` are centred at the quantile itself: their sum is 0 where C is right, for
    any size of lot, also that of a client whose lots are not of the expected size.
    """
    share = settings.clipping_quantile

    def below(norms: torch.Tensor, norm: float) -> torch.Tensor:
        # nan is above
        return (norms <= norm).double() - share

    def in_units_of_norm(norms: torch.Tensor, norm: float) -> torch.Tensor:
        return (norms / norm).nan_to_num(1.0).clamp(max=1.0)

    extras = {
        "quantile": Extra(below, max(share, 1 - share)),
        "paper_scalar": Extra(in_units_of_norm, 1.0),
    }
    return extras.get(settings.clipping)


class Clip:
    """Holds one client's clipping norm from step to step.

    Attributes:
        norm: C now.
        extra: the second sum of the mode, or None.
    """

    def __init__(self, settings: Dpsgd):
        self.settings = settings
        self.norm = 1.0 if settings.clipping == "auto_s" else settings.clipping_norm
        self.extra = _extra(settings)

    @property
    def sensitivity(self) -> float:
        """Returns the most that one record adds to the sum.

        It is C, or 1 by AUTO-S, which leaves every norm below it.
        """
        return self.norm

    @property
    def rule(self) -> Rule:
        """Returns how gradients are scaled."""
        if self.settings.clipping == "auto_s":
            return lambda norms: 1 / (norms + GAMMA)
        return clipped(self.norm)

    def noise_stddev(self, noise_multiplier: float) -> float:
        """Returns the standard deviation of the noise on each coordinate of the clipped sum.

        It is chosen so that the whole step, second sum included, costs as much as one Gaussian step
        with `noise_multiplier`. With a second sum the first has multiplier z, and the noise
        s = clipping_noise z of the second is s / b of its sensitivity b: together
        (z^-2 + (s / b)^-2)^(-1/2) = noise_multiplier.
        """
        return self._sum_multiplier(noise_multiplier) * self.sensitivity

    def follow(self, norm: float) -> None:
        """Takes the server's norm, by `proxy`: from public images.

        Whatever it sends, the noise is in proportion.
        """
        if self.settings.clipping == "proxy":
            self._move_to(norm)

    def adapt(
        self, norms: torch.Tensor, noise_multiplier: float, noise: Noise, released: float = math.nan
    ) -> None:
        """Sets the next step's norm.

        `quantile` (Andrew et al. 2021): C exp(-rate (count below C - quantile x lot) / expected lot),
        from a noisy sum. Adap DP-FL's eq. (6) is printed so that it can be read in two ways:
        `paper_scalar`, the factor times the noisy mean of clipped norms; `paper_vector`, the factor
        times the norm of the released gradient, which is free. Neither stays where gradients are
        (dpfl.md 2.3).

        Args:
            norms: float64 [lot], of the lot's gradients before scaling. Private: they enter the noisy
                sum alone.
            noise_multiplier: that of the whole step, which is charged.
            noise: the client's source.
            released: L2 norm of the noisy gradient.
        """
        settings = self.settings
        mode = settings.clipping
        if self.extra:
            mean = self._noisy_mean(norms, noise_multiplier, noise)
        if mode == "quantile":
            step = -settings.clipping_rate * mean
            self._move_to(self.norm * math.exp(min(max(step, -1.0), 1.0)))
        elif mode == "paper_scalar":
            self._move_to(settings.clipping_factor * mean * self.norm)
        elif mode == "paper_vector":
            self._move_to(settings.clipping_factor * released)
        elif mode == "nonprivate_oracle" and len(norms):
            self._move_to(settings.clipping_factor * norms.mean().item())

    def _noisy_mean(self, norms: torch.Tensor, noise_multiplier: float, noise: Noise) -> float:
        """Releases the second sum with noise, over the expected lot. The step's charge covers it."""
        stddev = self.settings.clipping_noise * self._sum_multiplier(noise_multiplier)
        total = self.extra.of(norms, self.norm).sum().numpy()
        noisy_sum = float_gaussian.release(total, deviation=stddev, noise=noise).item()
        return noisy_sum / self.settings.expected_lot

    def _move_to(self, norm: float) -> None:
        """Sets C within RANGE of the first; where it began, when the norm is no number."""
        first = self.settings.clipping_norm
        self.norm = first if math.isnan(norm) else min(max(norm, first / RANGE), first * RANGE)

    def _sum_multiplier(self, noise_multiplier: float) -> float:
        """Returns z of the gradients' sum."""
        if not self.extra:
            return noise_multiplier
        beside = self.extra.sensitivity / self.settings.clipping_noise
        return noise_multiplier * math.hypot(1.0, beside)
