"""Computes what a run has cost after each of its steps, by privacy loss distributions.

The library is dp-accounting. A distribution is composed with the next step's, never begun anew:
that takes milliseconds a round, where a whole schedule takes seconds. It is for a log;
`schedule_epsilon_pld` is the final figure.

>>> step = Steps(noise_multiplier=1.0, sampling_rate=0.01, count=10)
>>> after_one = NOTHING.then(step)
>>> after_one is NOTHING.then(step)
True
>>> NOTHING.epsilon(1e-5), after_one.epsilon(1e-5) < after_one.then(step).epsilon(1e-5)
(0.0, True)
"""

import weakref
from functools import cached_property, lru_cache

from pipelines.privacy.accounting.loss_distributions import sampled_gaussian, self_composed
from pipelines.privacy.accounting.schedules import Steps

# of the losses' lattice, twenty times the library's own; the estimate stays an upper bound
INTERVAL = 2e-3


class Losses:
    """Holds the privacy loss after a sequence of steps. It is immutable.

    `then` shares its result, so clients with the same history share one distribution. Earlier
    states are not kept alive.

    Args:
        before: The state before the steps, or None.
        steps: The last steps, or None at the beginning.
    """

    def __init__(self, before: "Losses | None" = None, steps: Steps | None = None):
        self._before = before
        self._steps = steps
        self._next = weakref.WeakValueDictionary()
        self._epsilons = {}

    def then(self, steps: Steps) -> "Losses":
        """Returns the state after these steps as well. Its cost is computed when it is read."""
        return self._next.setdefault(steps, Losses(self, steps)) if steps.count else self

    def epsilon(self, delta: float) -> float:
        """Returns the epsilon of all steps so far at this delta."""
        if not self._steps:
            return 0.0
        # clients that share the state read the same figure
        if delta not in self._epsilons:
            self._epsilons[delta] = self._distribution.get_epsilon_for_delta(delta)
        return self._epsilons[delta]

    @cached_property
    def _distribution(self):
        """Composes from the last computed state.

        A resumed run therefore does not compute epsilon for every earlier round.
        """
        waiting = []
        last = self
        while last._steps and "_distribution" not in vars(last):
            waiting.append(last)
            last = last._before
        distribution = last._distribution if last._steps else None
        for state in reversed(waiting):
            next_steps = _of(state._steps)
            distribution = distribution.compose(next_steps) if distribution else next_steps
        self._before = None
        return distribution


@lru_cache(maxsize=128)
def _of(steps: Steps):
    """Returns the distribution of equal steps.

    One step is not composed with itself: the search for its tails costs time, and the running
    composition looks for them anyway.
    """
    step = sampled_gaussian(
        noise_multiplier=steps.noise_multiplier,
        sampling_rate=steps.sampling_rate,
        interval=INTERVAL,
    )
    return self_composed(step, steps.count) if steps.count > 1 else step


NOTHING = Losses()
