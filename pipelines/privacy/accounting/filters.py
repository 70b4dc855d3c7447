"""Holds a run to a budget fixed in advance, by a Rényi filter, though outcomes choose its noise.

Feldman and Zrnic 2021, Theorem 4.3: at one fixed order, adaptively chosen steps compose as fixed
ones do, as long as each is checked against what is left before it is taken. The least over several
orders would choose the order from the outcome, and be no filter.

>>> run = RenyiFilter(epsilon=3.0, delta=1e-5, order=8.0)
>>> step = Steps(noise_multiplier=2.0, sampling_rate=0.1, count=1)
>>> run.most(step, at_most=10_000)
130
>>> run.spend(step)
>>> run.most(step, at_most=10_000)
129
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.privacy.accounting.best_order import best_order
from pipelines.privacy.accounting.calibration import largest
from pipelines.privacy.accounting.renyi import ORDERS, conversion, rdp_epsilon
from pipelines.privacy.accounting.schedules import Schedule, Steps, schedule_rdp


@dataclass
class RenyiFilter:
    """Holds the budget of a whole run.

    Attributes:
        epsilon, delta: The guarantee of the run.
        order: The one Rényi order, fixed before the run.
        spent: rho(order) so far.
    """

    epsilon: float
    delta: float
    order: float
    spent: float = 0.0

    @property
    def budget(self) -> float:
        """Returns rho(order) that may be spent: epsilon less the conversion."""
        return self.epsilon - conversion(order=self.order, delta=self.delta)

    def affords(self, steps: Steps) -> bool:
        """Returns True if the budget has room for these steps."""
        return self.spent + schedule_rdp(schedule=[steps], order=self.order) <= self.budget

    def most(self, step: Steps, at_most: int) -> int:
        """Returns how many steps like this one, up to `at_most`, the budget has room for."""
        return largest(lambda count: self.affords(step._replace(count=count)), at_most)

    def spend(self, steps: Steps) -> None:
        """Enters steps before they are taken.

        Raises:
            ValueError: They would leave the budget. Nothing is entered.
        """
        if not self.affords(steps):
            raise ValueError(
                f"{steps} would exceed epsilon {self.epsilon:g} at order {self.order:g}."
            )
        self.spent += schedule_rdp(schedule=[steps], order=self.order)

    @property
    def epsilon_spent(self) -> float:
        """Returns the epsilon that is spent so far.

        It is never the claim, which is the whole `epsilon`: when a run stopped may depend on
        outcomes.
        """
        return rdp_epsilon(rdp=self.spent, order=self.order, delta=self.delta)


def planned_order(*, schedule: Schedule, delta: float, orders: Sequence[float] = ORDERS) -> float:
    """Returns the order at which a planned schedule costs least, to fix a filter at.

    Args:
        schedule: The planned steps.
        delta: The delta of the run.
        orders: The orders to choose from, from small to large.
    """

    def cost(order: float) -> float:
        rdp = schedule_rdp(schedule=schedule, order=order)
        return rdp + conversion(order=order, delta=delta)

    return best_order(cost, orders)
