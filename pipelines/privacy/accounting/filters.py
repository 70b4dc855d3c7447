"""A Rényi filter: steps whose noise is chosen from private outcomes, within a budget fixed in advance.

Feldman and Zrnic 2021, Theorem 4.3: at one fixed order, adaptively chosen steps compose as fixed ones do, as long as
each is checked against what is left before it is taken. The least over several orders would choose the order from the
outcome: no filter.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.privacy.accounting.renyi import ORDERS, conversion, rdp_epsilon
from pipelines.privacy.accounting.schedules import Schedule, Steps, largest, schedule_rdp


@dataclass
class RenyiFilter:
    """(epsilon, delta) for a whole run, at one order fixed before it. `spent`: rho(order) so far."""

    epsilon: float
    delta: float
    order: float
    spent: float = 0.0

    @property
    def budget(self) -> float:
        """rho(order) that may be spent: epsilon less the conversion."""
        return self.epsilon - conversion(order=self.order, delta=self.delta)

    def affords(self, steps: Steps) -> bool:
        return self.spent + schedule_rdp(schedule=[steps], order=self.order) <= self.budget

    def most(self, step: Steps, at_most: int) -> int:
        """How many steps like this one, up to `at_most`, it affords."""
        return largest(lambda count: self.affords(step._replace(count=count)), at_most)

    def spend(self, steps: Steps) -> None:
        """Enters steps before they are taken.

        Raises:
            ValueError: they would leave the budget; nothing is entered.
        """
        if not self.affords(steps):
            raise ValueError(
                f"{steps} would exceed epsilon {self.epsilon:g} at order {self.order:g}."
            )
        self.spent += schedule_rdp(schedule=[steps], order=self.order)

    @property
    def epsilon_spent(self) -> float:
        """How far the run is. Never the claim, which is the whole `epsilon`: when it stopped may depend on outcomes."""
        return rdp_epsilon(rdp=self.spent, order=self.order, delta=self.delta)


def planned_order(*, schedule: Schedule, delta: float, orders: Sequence[float] = ORDERS) -> float:
    """The order at which a planned schedule costs least: what to fix a filter at."""
    return min(
        orders,
        key=lambda order: schedule_rdp(schedule=schedule, order=order)
        + conversion(order=order, delta=delta),
    )
