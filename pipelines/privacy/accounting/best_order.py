"""Finds the Rényi order at which releases cost least, without a look at every order.

At the order a they cost epsilon(a) = rho(a) + conversion(a). That falls with a, then rises: the
logarithm of a moment, (a - 1) rho(a), is convex in a. So is (a - 1) times either conversion of
`renyi`. A convex function over a - 1 has one valley, and halving finds its lowest point.

If rounding misled the search, it would return another order. What is claimed there is valid, and
only larger.

>>> best_order(lambda order: (order - 3) ** 2, orders=(1.5, 2.0, 3.0, 4.0, 8.0))
3.0
"""

from collections.abc import Callable, Sequence
from functools import cache


def best_order(cost: Callable[[float], float], orders: Sequence[float]) -> float:
    """Returns the first order of least cost.

    Args:
        cost: Falls with the order, then rises.
        orders: Growing numbers.
    """
    cost = cache(cost)
    low = 0
    high = len(orders) - 1
    while low < high:
        middle = (low + high) // 2
        if cost(orders[middle + 1]) < cost(orders[middle]):
            low = middle + 1
        else:
            high = middle
    return orders[low]


def least_epsilon(epsilon: Callable[[float], float], orders: Sequence[float]) -> float:
    """Returns the least epsilon over the orders.

    Args:
        epsilon: By order, from `renyi.rdp_epsilon`. That is 0 at small orders where next to nothing
            was spent, before the valley begins.
        orders: Growing numbers.
    """
    if epsilon(orders[0]) == 0:
        return 0.0
    return epsilon(best_order(epsilon, orders))
