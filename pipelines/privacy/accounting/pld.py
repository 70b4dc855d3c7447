"""What steps that are taken one after the other have cost after each, by privacy loss distributions (dp-accounting).

A distribution is composed with the next step's, never begun anew: milliseconds a round, where a whole schedule takes
seconds. For a log; `schedule_epsilon_pld` is the final figure.
"""

import weakref
from functools import cached_property, lru_cache

from pipelines.privacy.accounting.schedules import Steps, dp_accounting

INTERVAL = 2e-3  # of the losses' lattice, twenty times the library's own; the estimate stays an upper bound


class Losses:
    """After some steps. Whoever takes the same ones from the same state shares the next, and nobody keeps the last."""

    def __init__(self, before: "Losses | None" = None, steps: Steps | None = None):
        self._before, self._steps, self._next = before, steps, weakref.WeakValueDictionary()
        self._epsilons = {}

    def then(self, steps: Steps) -> "Losses":
        """After these as well. What it comes to is computed when it is asked for."""
        return self._next.setdefault(steps, Losses(self, steps)) if steps.count else self

    def epsilon(self, delta: float) -> float:
        if delta not in self._epsilons:  # who shares the state asks for the same
            self._epsilons[delta] = (
                self._distribution.get_epsilon_for_delta(delta) if self._steps else 0.0
            )
        return self._epsilons[delta]

    @cached_property
    def _distribution(self):
        """From the last that was asked for on: a run that goes on after a kill asks for none of thousands before."""
        waiting, last = [], self
        while last._steps and "_distribution" not in vars(last):
            waiting.append(last)
            last = last._before
        found = last._distribution if last._steps else None
        for one in reversed(waiting):
            own = _of(one._steps)
            found = found.compose(own) if found else own
        self._before = None
        return found


@lru_cache(maxsize=128)
def _of(steps: Steps):
    """Composing even one with itself looks for its tails, which takes ten times as long as composing it with others."""
    one = dp_accounting().pld.privacy_loss_distribution.from_gaussian_mechanism(
        steps.noise_multiplier,
        sampling_prob=steps.sampling_rate,
        value_discretization_interval=INTERVAL,
    )
    return one.self_compose(steps.count) if steps.count > 1 else one


NOTHING = Losses()
