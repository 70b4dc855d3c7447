"""What steps that are taken one after the other have cost after each, by privacy loss distributions (dp-accounting).

A distribution is composed with the next step's, never begun anew: milliseconds a round, where a whole schedule takes
seconds. For a log; `schedule_epsilon_pld` is the final figure.
"""

import weakref
from functools import cached_property, lru_cache

from pipelines.privacy.accounting.schedules import Steps, dp_accounting

INTERVAL = 1e-3  # of the losses' lattice, ten times the library's own; the estimate stays an upper bound


class Losses:
    """After some steps. Whoever takes the same ones from the same state shares the next, and nobody keeps the last."""

    def __init__(self, before: "Losses | None" = None, steps: Steps | None = None):
        self._before, self._steps, self._next = before, steps, weakref.WeakValueDictionary()

    def then(self, steps: Steps) -> "Losses":
        """After these as well. What it comes to is computed when it is asked for."""
        return self._next.setdefault(steps, Losses(self, steps)) if steps.count else self

    def epsilon(self, delta: float) -> float:
        return self._distribution.get_epsilon_for_delta(delta) if self._steps else 0.0

    @cached_property
    def _distribution(self):
        noise, rate, count = self._steps
        own, before, self._before = _one(noise, rate).self_compose(count), self._before, None
        return before._distribution.compose(own) if before._steps else own


@lru_cache(maxsize=512)
def _one(noise_multiplier: float, sampling_rate: float):
    """Of one step."""
    return dp_accounting().pld.privacy_loss_distribution.from_gaussian_mechanism(
        noise_multiplier, sampling_prob=sampling_rate, value_discretization_interval=INTERVAL
    )


NOTHING = Losses()
