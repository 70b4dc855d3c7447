"""Tests the search for the best order against a look at every order."""

import math

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.privacy import accounting
from pipelines.privacy.accounting import ORDERS, Steps, renyi, schedule_rdp
from pipelines.privacy.accounting.best_order import best_order

SOME = ORDERS[::5]
STEPS = st.builds(
    Steps,
    st.floats(0.05, 200.0),
    st.sampled_from([1e-4, 0.01, 0.1, 0.25, 0.9, 1.0]),
    st.integers(0, 5000),
)


@settings(max_examples=40, deadline=None)
@given(
    schedule=st.lists(STEPS, min_size=1, max_size=3),
    delta=st.sampled_from([1e-12, 1e-5, 1e-2, 0.5]),
    convert=st.sampled_from([renyi.conversion, renyi.classic_conversion]),
)
@example(schedule=[Steps(1e-8, 0.1, 5)], delta=1e-5, convert=renyi.conversion)
@example(schedule=[Steps(200.0, 1e-4, 1)], delta=0.5, convert=renyi.conversion)
@example(schedule=[Steps(1.0, 0.1, 0)], delta=1e-5, convert=renyi.conversion)
def test_the_least_epsilon_is_that_of_all_orders(schedule, delta, convert):
    """No order is left out: the two are equal to the last bit."""
    every = []
    for order in SOME:
        rdp = schedule_rdp(schedule=schedule, order=order)
        every.append(renyi.rdp_epsilon(rdp=rdp, order=order, delta=delta, convert=convert))
    found = accounting.schedule_epsilon(
        schedule=schedule, delta=delta, convert=convert, orders=SOME
    )
    assert found == min(every)


@settings(max_examples=25, deadline=None)
@given(
    filters=st.lists(
        st.tuples(st.sampled_from(ORDERS), st.floats(0.0, 20.0)), min_size=1, max_size=3
    ),
    mu=st.floats(0.0, 4.0),
    delta=st.sampled_from([1e-12, 1e-5, 0.5]),
)
def test_the_total_with_a_filter_is_the_least_of_the_orders_up_to_its_own(filters, mu, delta):
    costs = [{"kind": "renyi", "order": order, "rdp": rdp} for order, rdp in filters]
    costs.append({"kind": "gaussian", "mu": mu})
    largest = min(order for order, _ in filters)
    every = []
    for order in [order for order in ORDERS if order <= largest]:
        rdp = sum(rdp for _, rdp in filters) + order * mu * mu / 2
        every.append(renyi.rdp_epsilon(rdp=rdp, order=order, delta=delta))
    least = min(every)
    expected = least if least <= accounting.LARGEST_EPSILON else math.inf
    assert accounting.total_epsilon(costs=costs, delta=delta) == expected


def test_of_equal_costs_the_first_order_is_taken():
    assert best_order(lambda order: 0.0, ORDERS) == ORDERS[0]
    assert best_order(lambda order: math.inf if order > 3 else -order, ORDERS) == 3.0
